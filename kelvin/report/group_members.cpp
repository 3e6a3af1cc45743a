#include "kelvin/report/group_members.h"

namespace kelvin {

std::vector<std::string> group_members(const Reading& reading) {
  const auto members = reading.definition.find("mean_over");
  if (reading.detector.empty() || members == reading.definition.end()) return {};
  std::vector<std::string> names;
  for (const auto& member : *members) {
    if (member.is_string()) names.push_back(member.get<std::string>());
  }
  return names;
}

bool is_of_one_member(const Reading& reading) { return group_members(reading).size() == 1; }

}  // namespace kelvin
