#include "kelvin/math/class_means.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin {
namespace {

TEST(ClassMeans, LeaveOutClassesWithoutSamples) {
  const auto features = doubles({1, 2, 3, 4, 5, 9}).view({3, 2});
  const auto found = class_means(features, labels_of({3, 1, 3}), 5);
  expect_close(found.means, doubles({3, 4, 3, 5.5}).view({2, 2}), 1e-15);
  expect_close(found.counts, doubles({1, 2}), 0);
  EXPECT_TRUE(torch::equal(found.places, labels_of({1, 0, 1})));
  expect_close(found.mean, doubles({3, 5}), 1e-15);
}

TEST(ClassMeans, OfFloatsAreSummedInDoublePrecision) {
  const auto features = (noise({1000, 3}, 0) + 1e4).to(torch::kFloat32);
  const auto labels = torch::arange(1000) % 2;
  const auto found = class_means(features, labels, 2);
  const auto wide = features.to(torch::kFloat64);
  EXPECT_EQ(found.means.scalar_type(), torch::kFloat64);
  expect_close(found.means[0], wide.index_select(0, torch::arange(0, 1000, 2)).mean(0), 1e-9);
  expect_close(found.mean, wide.mean(0), 1e-9);
}

TEST(ClassMeans, RejectNoSamples) {
  EXPECT_EQ(error_of([] {
              class_means(torch::zeros({0, 2}), labels_of({}), 3);
            }),
            "class_means: features must be [samples, dims] of at least 1 sample and 1 class, got "
            "[0, 2] and 3 classes");
}

}  // namespace
}  // namespace kelvin
