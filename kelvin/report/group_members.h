#pragma once

#include <string>
#include <vector>

#include "kelvin/core/reading.h"

namespace kelvin {

// The foreign datasets that a detector's reading of a group, "near" or "far", is the mean over;
// none if it is of a dataset.
std::vector<std::string> group_members(const Reading& reading);

// Whether it only repeats what stands under the name of the group's one member.  Scripts ask for
// groups; to people it would be the same number twice.
bool is_of_one_member(const Reading& reading);

}  // namespace kelvin
