#include "kelvin/ops/parallel_for.h"

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <c10/core/GradMode.h>
#include <torch/types.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

// Of ThreadSanitizer, where it is loaded.  It does not see how the runtime of OpenMP starts threads
// and waits for them, and would take whatever they hand to each other for a race.  For the same
// reason this file is compiled without it (CMakeLists.txt).
extern "C" {
void __tsan_acquire(void* address) __attribute__((weak));  // NOLINT(bugprone-reserved-identifier)
void __tsan_release(void* address) __attribute__((weak));  // NOLINT(bugprone-reserved-identifier)
}

// Of OpenBLAS, which has threads of its own and knows nothing of the parallel regions of LibTorch.
// With another BLAS there are none.
extern "C" {
int openblas_get_num_threads() __attribute__((weak));
void openblas_set_num_threads(int threads) __attribute__((weak));
}

namespace kelvin {
namespace {

// Says that what was written before `give` is seen after `take`.
class Handover {
 public:
  void give() {
    if (__tsan_release != nullptr) __tsan_release(this);
  }
  void take() {
    if (__tsan_acquire != nullptr) __tsan_acquire(this);
  }
};

// Of several, the one that a single thread would have met.
class FirstFailure {
 public:
  void keep(int64_t place, std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (place >= place_) return;
    place_ = place;
    failure_ = std::move(failure);
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  int64_t place_ = std::numeric_limits<int64_t>::max();
  std::exception_ptr failure_;
};

}  // namespace

void parallel_for(int64_t begin, int64_t end, int64_t grain,
                  c10::function_ref<void(int64_t, int64_t)> work) {
  FirstFailure failure;
  Handover to_workers;
  Handover from_workers;
  to_workers.give();
  at::parallel_for(begin, end, grain, [&](int64_t first, int64_t last) {
    to_workers.take();
    const c10::AutoGradMode no_gradients(false);
    try {
      work(first, last);
    } catch (...) {
      failure.keep(first, std::current_exception());
    }
    from_workers.give();
  });
  from_workers.take();
  failure.rethrow();
}

SerialProducts::SerialProducts() {
  if (openblas_get_num_threads == nullptr || openblas_set_num_threads == nullptr) return;
  if (at::in_parallel_region()) return;
  static std::recursive_mutex one_at_a_time;
  lock_ = std::unique_lock(one_at_a_time);
  threads_before_ = openblas_get_num_threads();
  openblas_set_num_threads(1);
}

SerialProducts::~SerialProducts() {
  if (threads_before_ > 0) openblas_set_num_threads(threads_before_);
}

void parallel_for_tasks(int64_t count, const std::function<void(int64_t)>& work) {
  const c10::AutoGradMode no_gradients(false);
  if (at::in_parallel_region() || count == 1) {
    for (int64_t i = 0; i < count; ++i) work(i);
    return;
  }
  const SerialProducts serial;
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

void for_row_blocks(int64_t count, const std::function<void(int64_t, int64_t)>& work) {
  constexpr int64_t kRows = 512;
  parallel_for_tasks((count + kRows - 1) / kRows, [&](int64_t block) {
    work(block * kRows, std::min((block + 1) * kRows, count));
  });
}

torch::Tensor row_numbers(int64_t count,
                          const std::function<torch::Tensor(int64_t, int64_t)>& numbers) {
  auto result = torch::empty({count}, torch::kFloat64);
  for_row_blocks(count, [&](int64_t begin, int64_t end) {
    result.slice(0, begin, end).copy_(numbers(begin, end));
  });
  return result;
}

}  // namespace kelvin
