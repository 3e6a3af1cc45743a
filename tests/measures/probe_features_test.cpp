#include "kelvin/measures/probe_features.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin {
namespace {

LayerRecord layer_of(const torch::Tensor& output, const torch::Tensor& before_add = {}) {
  LayerRecord layer;
  layer.name = "block";
  layer.output = output;
  layer.before_add = before_add;
  return layer;
}

TEST(ProbeFeatures, OfMapsAreAllOfThemOrTheirAverages) {
  const auto maps = torch::arange(2 * 3 * 4 * 4, torch::kFloat32).view({2, 3, 4, 4});
  const auto layer = layer_of(maps);
  const auto flat = flattened_rows(layer, ProbeTap::output);
  EXPECT_EQ(flat.sizes(), (std::vector<int64_t>{2, 48}));
  expect_close(std::get<0>(flat.sort(1)), maps.flatten(1), 0);
  expect_close(pooled_rows(layer, ProbeTap::output, 2),
               maps.view({2, 3, 2, 2, 2, 2}).mean({3, 5}).flatten(1), 1e-5);
}

TEST(ProbeFeatures, FlattenedShareTheMemoryOfChannelsLastMaps) {
  const auto maps =
      noise({2, 3, 4, 4}, 1).to(torch::kFloat32, false, false, torch::MemoryFormat::ChannelsLast);
  EXPECT_EQ(flattened_rows(layer_of(maps), ProbeTap::output).data_ptr(), maps.data_ptr());
}

TEST(ProbeFeatures, AreReadBeforeTheAddWhereThereIsOne) {
  const auto output = torch::ones({2, 3});
  const auto before = torch::zeros({2, 3});
  const auto block = layer_of(output, before);
  expect_close(flattened_rows(block, ProbeTap::before_add), before, 0);
  expect_close(flattened_rows(block, ProbeTap::output), output, 0);
  expect_close(pooled_rows(layer_of(output), ProbeTap::before_add, 2), output, 0);
  EXPECT_EQ(tap_text(block, ProbeTap::before_add), "after normalisation, before the residual add");
  EXPECT_EQ(tap_text(layer_of(output), ProbeTap::before_add), tap_text(block, ProbeTap::output));
  EXPECT_NE(tap_text(ProbeTap::before_add), tap_text(ProbeTap::output));
}

TEST(ProbeFeatures, PooledMustBeFinite) {
  const auto layer = layer_of(torch::full({2, 3}, std::numeric_limits<float>::infinity()));
  EXPECT_EQ(error_of([&] { pooled_rows(layer, ProbeTap::output, 2); }),
            "linear_probe: features of layer 'block' must be finite, hold NaN or infinity");
}

TEST(ProbeFeatures, NeedLabelsOfAtLeastTwoClasses) {
  Record record;
  record.classes = 1;
  record.labels = labels_of({0, 0});
  EXPECT_EQ(error_of([&] { check_labels(record); }),
            "linear_probe: needs at least 2 classes, the trained dataset has 1");
  record.classes = 3;
  record.ood = "svhn";
  record.labels = labels_of({0, 3});
  EXPECT_EQ(error_of([&] { check_labels(record); }),
            "linear_probe: labels of svhn must be in [0, 3), go from 0 to 3");
  record.labels = labels_of({-1, 2});
  EXPECT_EQ(error_of([&] { check_labels(record); }),
            "linear_probe: labels of svhn must be in [0, 3), go from -1 to 2");
  record.labels = torch::zeros({2, 2}, torch::kInt64);
  EXPECT_EQ(error_of([&] { check_labels(record); }),
            "linear_probe: labels must be whole numbers, one for each sample, got [2, 2]");
  record.labels = labels_of({0, 0, 2});  // a class without samples
  check_labels(record);
}

TEST(ProbeFeatures, NeedASampleForEachClass) {
  check_enough_samples(3, 3);
  EXPECT_EQ(error_of([] { check_enough_samples(2, 3); }),
            "linear_probe: needs at least as many training samples as classes, 3, got 2");
}

}  // namespace
}  // namespace kelvin
