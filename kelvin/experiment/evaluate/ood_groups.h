#pragma once

#include <string>
#include <vector>

#include "kelvin/core/reading.h"

namespace kelvin {

// OOD datasets that are like the one trained on, and those that are not.
struct OodGroups {
  std::vector<std::string> near = {};
  std::vector<std::string> far = {};
};

// Those of OpenOOD's benchmark v1.5 for CIFAR-10 and CIFAR-100, as far as they are datasets of
// ours; none for others.
OodGroups known_groups(const std::string& dataset);

// An Error if a name is there twice, or is that of a group; `where` stands before it.
void check_ood_names(const std::string& where, const std::vector<std::string>& names);

// An Error if a member is none of the OOD datasets.
void check_members(const OodGroups& groups, const std::vector<std::string>& ood);

// For each detector the mean of each number over the OOD datasets of a group, as readings whose
// `ood` is "near" or "far".  Of members that were measured, which `mean_over` in the definition
// names: if it is only one, its numbers.  None of a group of which none was.
Readings group_means(const Readings& readings, const OodGroups& groups);

}  // namespace kelvin
