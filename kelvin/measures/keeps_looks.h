#pragma once

#include "kelvin/math/named_tensors.h"

namespace kelvin {

// Of a measure whose curves are worth keeping of every look during training, not only of the end:
// small ones that change with it.
class KeepsLooks {
 public:
  virtual ~KeepsLooks() = default;

  // Under the names that its curves have.
  virtual NamedTensors curves_of_look() const = 0;
};

}  // namespace kelvin
