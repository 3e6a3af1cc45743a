#pragma once

#include <string>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/report/tables/table.h"

namespace kelvin {

// The OOD datasets that a detector's reading of a group, "near" or "far", is the mean over;
// none if it is of a dataset.
std::vector<std::string> group_members(const Reading& reading);

// Whether it only repeats what stands under the name of the group's one member.  Scripts ask for
// groups; to people it would be the same number twice.
bool is_of_one_member(const Reading& reading);

// Readings of detectors for people: one table per OOD dataset or group of them, one row per
// detector, the best AUROC first.  A group of one dataset is named beside it, rather than having
// the same table again.  Which class FPR95 and AUPR call positive stands in the header.
struct DetectionTables {
  std::vector<Table> tables;
  Readings rest;  // what is not of a detector
};

// All, or for narrow places that of the AUROC alone, to one decimal.
enum class ShownIntervals { all, auroc };

DetectionTables detection_tables(const Readings& readings,
                                 ShownIntervals intervals = ShownIntervals::all);

}  // namespace kelvin
