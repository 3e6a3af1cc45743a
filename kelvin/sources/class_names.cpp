#include "kelvin/sources/class_names.h"

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"

namespace kelvin {

std::vector<std::string> class_names(const std::string& list) {
  const auto found = class_lists().find(list);
  check(found != class_lists().end(), "no list of classes named '", list, "'");
  auto names = split(found->second, '\n');
  if (names.back().empty()) names.pop_back();  // the last line ends as the others do
  return names;
}

}  // namespace kelvin
