#include "kelvin/math/parallel_for.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "kelvin/core/check.h"
#include "tests/support/errors.h"
#include "tests/support/threads.h"

namespace kelvin {
namespace {

TEST(ParallelFor, GoesOverAllPlacesOnce) {
  for (const int threads : {1, 2, 4}) {
    const ThreadCount count(threads);
    std::vector<std::atomic<int>> times(37);
    parallel_for(3, 37, 2, [&](int64_t first, int64_t last) {
      ASSERT_LT(first, last);
      for (auto i = first; i < last; ++i) ++times[static_cast<size_t>(i)];
    });
    for (size_t i = 0; i < times.size(); ++i) EXPECT_EQ(times[i], i < 3 ? 0 : 1) << i;
  }
  parallel_for(5, 5, 1, [](int64_t, int64_t) { FAIL(); });
}

TEST(ParallelFor, RunsOnSeveralThreads) {
  const ThreadCount count(2);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  parallel_for(0, 2, 1, [&](int64_t, int64_t) {
    const std::lock_guard lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(ids.size(), 2U);
}

TEST(ParallelFor, TakesOneThreadForEveryGrainAtMost) {
  const ThreadCount count(4);
  std::atomic<int> ranges = 0;
  parallel_for(0, 100, 60, [&](int64_t, int64_t) { ++ranges; });
  EXPECT_EQ(ranges, 2);
}

TEST(ParallelFor, RecordsNoGradientsOnAnyThread) {
  for (const int threads : {1, 2, 4}) {
    const ThreadCount count(threads);
    std::atomic<int> recording = 0;
    parallel_for(0, 8, 1, [&](int64_t, int64_t) { recording += torch::GradMode::is_enabled(); });
    EXPECT_EQ(recording, 0) << threads;
    EXPECT_TRUE(torch::GradMode::is_enabled());
  }
}

// Where gradients are recorded this fails in some of a few hundred times.
TEST(ParallelFor, LetsThreadsWriteThingsWithGradientsIntoOneTensor) {
  const ThreadCount count(2);
  const auto weight = torch::ones({8}).set_requires_grad(true);
  for (int i = 0; i < 300; ++i) {
    const auto result = torch::zeros({64, 8});
    parallel_for(0, 64, 1, [&](int64_t first, int64_t last) {
      for (auto row = first; row < last; ++row) result[row].copy_(weight * row);
    });
    ASSERT_FALSE(result.requires_grad());
    ASSERT_EQ(result.sum().item<double>(), 8 * 63 * 32);
  }
}

TEST(ParallelFor, MayBeNested) {
  std::atomic<int> done = 0;
  parallel_for(0, 3, 1, [&](int64_t first, int64_t last) {
    for (auto i = first; i < last; ++i) {
      parallel_for(0, 4, 1,
                   [&](int64_t begin, int64_t end) { done += static_cast<int>(end - begin); });
    }
  });
  EXPECT_EQ(done, 12);
}

TEST(ParallelFor, RethrowsWhatTheFirstRangeThatFailsDoes) {
  for (const int threads : {1, 2, 4}) {
    const ThreadCount count(threads);
    for (int again = 0; again < 20; ++again) {
      EXPECT_EQ(error_of([] {
                  parallel_for(0, 100, 1, [](int64_t first, int64_t last) {
                    for (auto i = first; i < last; ++i) check(i < 20, "place ", i);
                  });
                }),
                "place 20");
    }
  }
}

}  // namespace
}  // namespace kelvin
