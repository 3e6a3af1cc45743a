#pragma once

#include <c10/util/C++17.h>  // which the next one needs
#include <c10/util/FunctionRef.h>

#include <cstdint>

namespace kelvin {

// Calls work(first, last) for ranges that together are [begin, end), each on a thread of its own,
// one thread for every `grain` places or part of them at most; inside another parallel region on
// the calling thread alone.  The only parallel loop that kelvin has: at::parallel_for leaves every
// thread its own modes, and those of the workers record gradients, so that operations on shared
// tensors race.  In here nothing does, whatever the caller's mode.  Rethrows what the first range
// that throws does.
void parallel_for(int64_t begin, int64_t end, int64_t grain,
                  c10::function_ref<void(int64_t, int64_t)> work);

}  // namespace kelvin
