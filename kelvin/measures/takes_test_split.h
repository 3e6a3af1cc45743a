#pragma once

#include <string>

#include "kelvin/measures/measure.h"
#include "kelvin/representations/record.h"

namespace kelvin {

// Of a measure that is defined on the training split of the dataset trained on, but takes the test
// split instead where there is no other, as in a dump; of foreign datasets it takes the test split
// alone.
class TakesTestSplit {
 public:
  virtual ~TakesTestSplit() = default;

  // What it would lack if `record` were the whole of the test split; empty if nothing.
  virtual std::string missing_in(const Record& record) const = 0;
};

// Whether it looks at the training images of foreign datasets.
inline bool needs_foreign_training(const Measure& measure) {
  const auto needs = measure.needs();
  return needs.ood && needs.train_split && dynamic_cast<const TakesTestSplit*>(&measure) == nullptr;
}

}  // namespace kelvin
