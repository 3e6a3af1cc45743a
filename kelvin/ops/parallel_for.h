#pragma once

#include <c10/util/C++17.h>  // which the next one needs
#include <c10/util/FunctionRef.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <mutex>

namespace kelvin {

// Calls work(first, last) for ranges that together are [begin, end), each on a thread of its own,
// one thread for every `grain` places or part of them at most; inside another parallel region on
// the calling thread alone.  The only parallel loop that kelvin has: at::parallel_for leaves every
// thread its own modes, and those of the workers record gradients, so that operations on shared
// tensors race.  In here nothing does, whatever the caller's mode.  Rethrows what the first range
// that throws does.
void parallel_for(int64_t begin, int64_t end, int64_t grain,
                  c10::function_ref<void(int64_t, int64_t)> work);

// While it lives, matrix products are computed by the thread that asks for them alone.  The BLAS
// has one number of threads for the whole process, so others that want the same wait.  Does nothing
// inside a parallel region.
class SerialProducts {
 public:
  SerialProducts();
  ~SerialProducts();
  SerialProducts(const SerialProducts&) = delete;
  SerialProducts& operator=(const SerialProducts&) = delete;

 private:
  std::unique_lock<std::recursive_mutex> lock_;
  int threads_before_ = 0;  // 0 if they stay as they are
};

// Does work(0), ..., work(count - 1), in any order, on all cores.  Several pieces have one core
// each: matrix products inside are not spread any further, so the threads of LibTorch and of the
// BLAS do not wait for each other after every product; a single piece may use all of them.
// The caller's modes hold in all of them, but gradients are never recorded: what pieces write into
// one tensor would race.  Rethrows what the first piece that throws does.  They should cost alike.
void parallel_for_tasks(int64_t count, const std::function<void(int64_t)>& work);

// Calls work(begin, end) for blocks of rows that stay in the caches and together are all of
// `count`, on all cores, each block on one.
void for_row_blocks(int64_t count, const std::function<void(int64_t, int64_t)>& work);

// One float64 number per row, without gradients: numbers(begin, end) gives those of a block.
torch::Tensor row_numbers(int64_t count,
                          const std::function<torch::Tensor(int64_t, int64_t)>& numbers);

}  // namespace kelvin
