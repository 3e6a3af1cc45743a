#pragma once

#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/report/table.h"

namespace kelvin {

// Readings of detectors for people: one table per foreign dataset or group of them, one row per
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
