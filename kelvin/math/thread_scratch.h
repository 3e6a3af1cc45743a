#pragma once

#include <cstddef>
#include <cstdint>

#include "kelvin/math/line_vector.h"

namespace kelvin {

// Room for `count` numbers that stays with this thread, so that kernels need not allocate.  It is
// the caller's until somebody on this thread asks for the same type and place again, and holds
// whatever was left in it.
template <class Number, int kPlace = 0>
Number* thread_scratch(int64_t count) {
  thread_local LineVector<Number> buffer;
  if (buffer.size() < static_cast<size_t>(count)) buffer.resize(static_cast<size_t>(count));
  return buffer.data();
}

}  // namespace kelvin
