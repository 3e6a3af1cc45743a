#include "kelvin/math/independent_work.h"

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <vector>

#include "kelvin/math/parallel_for.h"

// Of OpenBLAS, which has threads of its own and knows nothing of the parallel regions of LibTorch.
// With another BLAS there are none.
extern "C" {
int openblas_get_num_threads() __attribute__((weak));
void openblas_set_num_threads(int threads) __attribute__((weak));
}

namespace kelvin {
namespace {

// While it lives, products are computed on the thread that asks for them.
class SerialBlas {
 public:
  SerialBlas() : threads_(is_known() ? openblas_get_num_threads() : 0) { set(1); }
  ~SerialBlas() { set(threads_); }
  SerialBlas(const SerialBlas&) = delete;
  SerialBlas& operator=(const SerialBlas&) = delete;

 private:
  static bool is_known() {
    return openblas_get_num_threads != nullptr && openblas_set_num_threads != nullptr;
  }
  static void set(int threads) {
    if (is_known()) openblas_set_num_threads(threads);
  }
  int threads_;
};

}  // namespace

void for_each_independent(int64_t count, const std::function<void(int64_t)>& work) {
  const c10::AutoGradMode no_gradients(false);
  if (at::in_parallel_region() || count == 1) {
    for (int64_t i = 0; i < count; ++i) work(i);
    return;
  }
  // How many threads the BLAS has is the same for the whole process.
  static std::recursive_mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const SerialBlas serial;
  const auto threads = std::min<int64_t>(count, at::get_num_threads());
  const at::ThreadLocalState caller;  // that it infers only, among others
  std::vector<std::exception_ptr> failures(static_cast<size_t>(count));
  parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    const at::ThreadLocalStateGuard as_caller(caller);
    for (auto first = begin; first < end; ++first) {
      // Every so many, because neighbours are alike and the first may be the largest.
      for (auto i = first; i < count; i += threads) {
        try {
          work(i);
        } catch (...) {
          failures[static_cast<size_t>(i)] = std::current_exception();
        }
      }
    }
  });
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace kelvin
