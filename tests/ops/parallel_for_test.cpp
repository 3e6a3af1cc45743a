#include "kelvin/ops/parallel_for.h"

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
#include "tests/support/tensors.h"
#include "tests/support/threads.h"

namespace kelvin::parallel_for_test {

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

TEST(IndependentWork, IsDoneOnceEach) {
  std::vector<std::atomic<int>> done(37);
  parallel_for_tasks(37, [&](int64_t i) { ++done[static_cast<size_t>(i)]; });
  for (const auto& times : done) EXPECT_EQ(times, 1);
  parallel_for_tasks(0, [](int64_t) { FAIL(); });
}

TEST(IndependentWork, RunsOnAllThreads) {
  const auto threads = at::get_num_threads();
  at::set_num_threads(2);
  std::vector<std::thread::id> ids(2);
  parallel_for_tasks(2,
                     [&](int64_t i) { ids[static_cast<size_t>(i)] = std::this_thread::get_id(); });
  at::set_num_threads(threads);
  EXPECT_NE(ids[0], ids[1]);
}

TEST(IndependentWork, GivesTheSameBitsForAnyNumberOfThreads) {
  const auto factor = noise({64, 3000}, 0).to(torch::kFloat32);
  const auto products = [&](int threads) {
    const auto before = at::get_num_threads();
    at::set_num_threads(threads);
    std::vector<torch::Tensor> all(5);
    parallel_for_tasks(5, [&](int64_t i) {
      all[static_cast<size_t>(i)] = factor.matmul(factor.t() * static_cast<double>(i));
    });
    at::set_num_threads(before);
    return torch::cat(all);
  };
  EXPECT_TRUE(torch::equal(products(1), products(2)));
}

TEST(IndependentWork, MayBeNested) {
  std::atomic<int> done = 0;
  parallel_for_tasks(3, [&](int64_t) { parallel_for_tasks(4, [&](int64_t) { ++done; }); });
  EXPECT_EQ(done, 12);
}

TEST(IndependentWork, RecordsNoGradientsInAnyPiece) {
  for (const int64_t pieces : {1, 6}) {
    std::atomic<int> recording = 0;
    parallel_for_tasks(pieces, [&](int64_t) { recording += torch::GradMode::is_enabled(); });
    EXPECT_EQ(recording, 0);
    EXPECT_TRUE(torch::GradMode::is_enabled());
  }
}

TEST(IndependentWork, KeepsTheModesOfTheCallerInEveryPiece) {
  const ThreadCount count(2);
  const auto inferring = [] {
    std::atomic<int> pieces = 0;
    parallel_for_tasks(6, [&](int64_t) { pieces += torch::InferenceMode::is_enabled(); });
    return pieces.load();
  };
  EXPECT_EQ(inferring(), 0);
  const torch::InferenceMode inference;
  EXPECT_EQ(inferring(), 6);
}

TEST(IndependentWork, RethrowsWhatAPieceThrows) {
  const auto message =
      error_of([] { parallel_for_tasks(4, [](int64_t i) { check(i != 2, "piece ", i); }); });
  EXPECT_EQ(message, "piece 2");
}

TEST(IndependentWork, RethrowsTheFirstOfSeveral) {
  const auto threads = at::get_num_threads();
  for (const int count : {1, 2, 4}) {
    at::set_num_threads(count);
    EXPECT_EQ(error_of([] { parallel_for_tasks(9, [](int64_t i) { check(i < 3, "piece ", i); }); }),
              "piece 3");
  }
  at::set_num_threads(threads);
}

TEST(RowBlocks, AreAllRowsOnce) {
  for (const int64_t count : {0, 1, 511, 512, 513, 5000}) {
    auto times = torch::zeros({count}, torch::kInt64);
    for_row_blocks(count, [&](int64_t begin, int64_t end) {
      ASSERT_LT(begin, end);
      times.slice(0, begin, end).add_(1);
    });
    EXPECT_TRUE((times == 1).all().item<bool>()) << count;
  }
}

// Copies of rows that record gradients into one tensor would race.
TEST(RowBlocks, GiveNumbersWithoutGradientsOfRowsThatHaveThem) {
  const ThreadCount count(2);
  const auto weight = torch::ones({4}, torch::kFloat64).set_requires_grad(true);
  const auto rows = noise({2048, 4}, 0);
  for (int i = 0; i < 300; ++i) {
    const auto found = row_numbers(
        2048, [&](int64_t begin, int64_t end) { return rows.slice(0, begin, end).matmul(weight); });
    ASSERT_FALSE(found.requires_grad());
    expect_close(found, rows.sum(1), 1e-14);
  }
}

TEST(RowBlocks, GiveTheNumbersInOrder) {
  const auto rows = noise({3000, 4}, 0);
  const auto found = row_numbers(
      3000, [&](int64_t begin, int64_t end) { return rows.slice(0, begin, end).sum(1); });
  EXPECT_EQ(found.scalar_type(), torch::kFloat64);
  expect_close(found, rows.sum(1), 1e-14);
  EXPECT_EQ(row_numbers(0, [&](int64_t, int64_t) { return torch::Tensor(); }).size(0), 0);
}

TEST(RowBlocks, AreWorkedOnInTheModeOfTheCaller) {
  const torch::InferenceMode inference;
  const auto rows = noise({3000, 4}, 0);
  const auto found = row_numbers(
      3000, [&](int64_t begin, int64_t end) { return rows.slice(0, begin, end).sum(1); });
  expect_close(found, rows.sum(1), 1e-14);
}

TEST(RowBlocks, PassOnErrors) {
  EXPECT_EQ(error_of([] {
              for_row_blocks(2000,
                             [](int64_t begin, int64_t) { check(begin < 1000, "from ", begin); });
            }).find("from "),
            0U);
}

}  // namespace kelvin::parallel_for_test
