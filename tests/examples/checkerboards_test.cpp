#include <gtest/gtest.h>
#include <torch/torch.h>

#include "kelvin/data/dataset.h"

namespace kelvin::checkerboards_test {

TEST(Checkerboards, HoldWhatWasAskedForInAllClasses) {
  const auto dataset = load_dataset("checkerboards", {.train_samples = 40, .test_samples = 8});
  EXPECT_EQ(dataset.train.size(), 40);
  EXPECT_EQ(dataset.test.size(), 8);
  EXPECT_EQ(dataset.train.labels.bincount({}, 4).min().item<int64_t>(), 10);
}

TEST(Checkerboards, WiderSquaresHaveFewerEdges) {
  const auto dataset = load_dataset("checkerboards", {.train_samples = 4, .test_samples = 4});
  const auto pixels = dataset.test.pixels.to(torch::kInt64);
  const auto edges = (pixels.slice(3, 1) != pixels.slice(3, 0, 31)).sum({1, 2, 3});
  for (int64_t i = 1; i < 4; ++i) {
    EXPECT_LT(edges[i].item<int64_t>(), edges[i - 1].item<int64_t>());
  }
}

}  // namespace kelvin::checkerboards_test
