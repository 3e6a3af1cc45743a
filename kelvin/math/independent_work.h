#pragma once

#include <cstdint>
#include <functional>

namespace kelvin {

// Does work(0), ..., work(count - 1), in any order, on all cores.  Several pieces have one core
// each: matrix products inside are not spread any further, so the threads of LibTorch and of the
// BLAS do not wait for each other after every product; a single piece may use all of them.
// The caller's modes hold in all of them, but gradients are never recorded: what pieces write into
// one tensor would race.  Rethrows what the first piece that throws does.  They should cost alike.
void for_each_independent(int64_t count, const std::function<void(int64_t)>& work);

}  // namespace kelvin
