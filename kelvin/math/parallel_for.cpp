#include "kelvin/math/parallel_for.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <exception>
#include <limits>
#include <mutex>
#include <utility>

// Of ThreadSanitizer, where it is loaded.  It does not see how the runtime of OpenMP starts threads
// and waits for them, and would take whatever they hand to each other for a race.  For the same
// reason this file is compiled without it (CMakeLists.txt).
extern "C" {
void __tsan_acquire(void* address) __attribute__((weak));  // NOLINT(bugprone-reserved-identifier)
void __tsan_release(void* address) __attribute__((weak));  // NOLINT(bugprone-reserved-identifier)
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

}  // namespace kelvin
