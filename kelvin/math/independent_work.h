#pragma once

#include <cstdint>
#include <functional>

namespace kelvin {

// Does work(0), ..., work(count - 1), in any order, on all cores.  Several pieces have one core
// each: matrix products inside are not spread any further, so the threads of LibTorch and of the
// BLAS do not wait for each other after every product; a single piece may use all of them.
// Modes of the calling thread, such as not to record gradients, hold in all of them.  Rethrows what
// the first of all pieces that throw does.  Neighbours should cost about the same.
void for_each_independent(int64_t count, const std::function<void(int64_t)>& work);

}  // namespace kelvin
