#include "kelvin/math/independent_work.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "kelvin/core/check.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"
#include "tests/support/threads.h"

namespace kelvin {
namespace {

TEST(IndependentWork, IsDoneOnceEach) {
  std::vector<std::atomic<int>> done(37);
  for_each_independent(37, [&](int64_t i) { ++done[static_cast<size_t>(i)]; });
  for (const auto& times : done) EXPECT_EQ(times, 1);
  for_each_independent(0, [](int64_t) { FAIL(); });
}

TEST(IndependentWork, RunsOnAllThreads) {
  const auto threads = at::get_num_threads();
  at::set_num_threads(2);
  std::vector<std::thread::id> ids(2);
  for_each_independent(
      2, [&](int64_t i) { ids[static_cast<size_t>(i)] = std::this_thread::get_id(); });
  at::set_num_threads(threads);
  EXPECT_NE(ids[0], ids[1]);
}

TEST(IndependentWork, GivesTheSameBitsForAnyNumberOfThreads) {
  const auto factor = noise({64, 3000}, 0).to(torch::kFloat32);
  const auto products = [&](int threads) {
    const auto before = at::get_num_threads();
    at::set_num_threads(threads);
    std::vector<torch::Tensor> all(5);
    for_each_independent(5, [&](int64_t i) {
      all[static_cast<size_t>(i)] = factor.matmul(factor.t() * static_cast<double>(i));
    });
    at::set_num_threads(before);
    return torch::cat(all);
  };
  EXPECT_TRUE(torch::equal(products(1), products(2)));
}

TEST(IndependentWork, MayBeNested) {
  std::atomic<int> done = 0;
  for_each_independent(3, [&](int64_t) { for_each_independent(4, [&](int64_t) { ++done; }); });
  EXPECT_EQ(done, 12);
}

TEST(IndependentWork, RecordsNoGradientsInAnyPiece) {
  for (const int64_t pieces : {1, 6}) {
    std::atomic<int> recording = 0;
    for_each_independent(pieces, [&](int64_t) { recording += torch::GradMode::is_enabled(); });
    EXPECT_EQ(recording, 0);
    EXPECT_TRUE(torch::GradMode::is_enabled());
  }
}

TEST(IndependentWork, KeepsTheModesOfTheCallerInEveryPiece) {
  const ThreadCount count(2);
  const auto inferring = [] {
    std::atomic<int> pieces = 0;
    for_each_independent(6, [&](int64_t) { pieces += torch::InferenceMode::is_enabled(); });
    return pieces.load();
  };
  EXPECT_EQ(inferring(), 0);
  const torch::InferenceMode inference;
  EXPECT_EQ(inferring(), 6);
}

TEST(IndependentWork, RethrowsWhatAPieceThrows) {
  const auto message =
      error_of([] { for_each_independent(4, [](int64_t i) { check(i != 2, "piece ", i); }); });
  EXPECT_EQ(message, "piece 2");
}

TEST(IndependentWork, RethrowsTheFirstOfSeveral) {
  const auto threads = at::get_num_threads();
  for (const int count : {1, 2, 4}) {
    at::set_num_threads(count);
    EXPECT_EQ(
        error_of([] { for_each_independent(9, [](int64_t i) { check(i < 3, "piece ", i); }); }),
        "piece 3");
  }
  at::set_num_threads(threads);
}

}  // namespace
}  // namespace kelvin
