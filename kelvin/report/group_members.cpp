#include "kelvin/report/group_members.h"

namespace kelvin {

std::vector<std::string> group_members(const Reading& reading) {
  const auto members = reading.definition.find("mean_over");
  if (reading.detector.empty() || members == reading.definition.end()) return {};
  return members->get<std::vector<std::string>>();
}

bool is_of_one_member(const Reading& reading) { return group_members(reading).size() == 1; }

}  // namespace kelvin
