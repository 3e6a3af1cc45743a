#pragma once

#include "kelvin/core/check.h"

namespace kelvin {

// The body of a kernel where it is not written for the processor.  Nobody comes here who asked
// has_...() or suits_...() first.
[[noreturn]] inline void missing_kernel() {
  throw Error("kelvin/math: a kernel was called that this processor has no instructions for");
}

}  // namespace kelvin
