#pragma once

#include <string>

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

}  // namespace kelvin
