#include "kelvin/measures/sketched_sample.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "kelvin/core/seeds.h"
#include "tests/support/errors.h"
#include "tests/support/measured.h"
#include "tests/support/tensors.h"

namespace kelvin::sketched_sample_test {

Record some_record(int64_t samples, uint64_t seed) {
  auto record = record_of(torch::zeros({samples, 3}), torch::arange(samples) % 3);
  record.layers = {
      {.name = "maps", .weight = {}, .output = noise({samples, 4, 5, 5}, seed).to(torch::kFloat32)},
      {.name = "flat", .weight = {}, .output = noise({samples, 6}, seed + 1).to(torch::kFloat32)}};
  return record;
}

TEST(SketchedSample, KeepsTheFirstSamplesOfAllLayers) {
  SketchedSample sample("some_measure", {.samples = 10, .sketch = 40, .seed = 5});
  EXPECT_TRUE(sample.is_empty());
  const auto first = some_record(7, 1);
  const auto second = some_record(7, 3);
  sample.add(first);
  sample.add(second);
  sample.add(some_record(7, 5));
  EXPECT_EQ(sample.size(), 10);
  expect_close(sample.labels(), torch::cat({first.labels, second.labels.slice(0, 0, 3)}), 0);
  ASSERT_EQ(sample.layers().size(), 2U);
  // 100 features are projected to 40, 6 stay as they are.
  const FeatureSketch sketch(100, 40, derive_seed(5, "maps"));
  const auto maps = torch::cat({first.layers[0].output, second.layers[0].output.slice(0, 0, 3)});
  EXPECT_EQ(sample.layers()[0].name, "maps");
  expect_close(sample.layers()[0].rows(), sketch.apply(maps.permute({0, 2, 3, 1}).flatten(1)),
               1e-5);
  EXPECT_EQ(sample.layers()[1].name, "flat");
  expect_close(sample.layers()[1].rows(),
               torch::cat({first.layers[1].output, second.layers[1].output.slice(0, 0, 3)}), 0);
}

TEST(SketchedSample, KeepsItsOwnCopies) {
  SketchedSample sample("some_measure", {});
  const auto record = some_record(4, 1);
  sample.add(record);
  const auto before = sample.layers()[1].rows();
  record.layers[1].output.zero_();
  record.labels.zero_();
  expect_close(sample.layers()[1].rows(), before, 0);
  EXPECT_GT(sample.labels().sum().item<int64_t>(), 0);
}

TEST(SketchedSample, StartsAgainOnceCleared) {
  SketchedSample sample("some_measure", {});
  sample.add(some_record(4, 1));
  sample.clear();
  EXPECT_TRUE(sample.is_empty());
  EXPECT_TRUE(sample.layers().empty());
  sample.add(some_record(3, 2));
  EXPECT_EQ(sample.size(), 3);
}

TEST(SketchedSample, KnowsHowMuchItWillHold) {
  const SampleOptions options = {.samples = 10, .sketch = 40};
  EXPECT_EQ(SketchedSample::bytes(some_record(7, 1), 1000, options), 10 * (40 + 6) * 4);
  EXPECT_EQ(SketchedSample::bytes(some_record(7, 1), 8, options), 8 * (40 + 6) * 4);
}

TEST(SketchedSample, RejectsRecordsItCannotUse) {
  EXPECT_EQ(error_of([] { SketchedSample("some_measure", {.samples = 0}); }),
            "some_measure: samples and sketch must be above 0, got 0 and 4096");
  SketchedSample sample("some_measure", {});
  auto without = some_record(4, 1);
  without.layers.clear();
  EXPECT_EQ(error_of([&] { sample.add(without); }),
            "some_measure: needs records of layers, got none");
  auto broken = some_record(4, 1);
  broken.layers[1].output[2][3] = std::nan("");
  EXPECT_EQ(error_of([&] { sample.add(broken); }),
            "some_measure: layer 'flat' must be finite, has a NaN or an infinity");
  SketchedSample another("some_measure", {});
  another.add(some_record(4, 1));
  auto renamed = some_record(4, 1);
  renamed.layers[0].name = "cards";
  EXPECT_EQ(error_of([&] { another.add(renamed); }),
            "some_measure: every batch must have the same layers; 'maps' of 100 features became "
            "'cards' of 100");
}

}  // namespace kelvin::sketched_sample_test
