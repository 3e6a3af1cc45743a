#include "kelvin/measures/collapse_sums.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>
#include <string>

#include "tests/support/errors.h"
#include "tests/support/layer_records.h"

namespace kelvin::collapse_sums_test {

constexpr int64_t kClasses = 4;
constexpr int64_t kAmple = int64_t{1} << 30;

// Features of 8 numbers, a layer of 2x3x4 feature maps and one of `wide` features.
Record example(int64_t samples, int64_t wide) {
  auto record =
      record_of(torch::zeros({samples, kClasses}), torch::arange(samples) % kClasses, Split::train);
  record.features = noise({samples, 8}, 1).to(torch::kFloat32);
  record.layers.resize(2);
  record.layers[0].name = "conv";
  record.layers[0].output = noise({samples, 2, 3, 4}, 2).to(torch::kFloat32);
  record.layers[1].name = "wide";
  record.layers[1].output = noise({samples, wide}, 3).to(torch::kFloat32);
  return record;
}

TEST(CollapseSums, AreOfTheClassifiersInputAndThenOfEveryLayer) {
  const auto rows = collapse_rows(example(6, 10));
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].layer, "");
  EXPECT_EQ(rows[1].layer, "conv");
  EXPECT_EQ(rows[1].rows.sizes(), (torch::IntArrayRef{6, 24}));
  EXPECT_EQ(rows[2].layer, "wide");
  EXPECT_EQ(collapse_place(""), "the classifier's input");
  EXPECT_EQ(collapse_place("conv"), "layer 'conv'");
  auto bare = example(6, 10);
  bare.features = torch::Tensor();
  EXPECT_EQ(collapse_rows(bare).size(), 2U);
}

TEST(CollapseSums, ProjectLayersOnlyWhereMemoryIsShortAndNeverTheClassifiersInput) {
  const auto record = example(1, 6000);
  EXPECT_EQ(collapse_width_limit(record, kAmple), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(collapse_bytes(record, kAmple), kClasses * 8 * (8 + 24 + 6000 + 2 * 6000));
  const int64_t few = 3 * kClasses * 8 * 3100;
  EXPECT_EQ(collapse_width_limit(record, few), 3000);
  EXPECT_EQ(collapse_bytes(record, few), kClasses * 8 * (8 + 24 + 3000 + 2 * 3000));
  EXPECT_GE(collapse_width_limit(record, 1), 256);
  const auto sums = collapse_sums(record, few, 7);
  EXPECT_EQ(sums[0].sketch.width(), 8);
  EXPECT_EQ(sums[1].sketch.width(), 24);
  EXPECT_EQ(sums[2].sketch.width(), 3000);
}

TEST(CollapseSums, HoldSumsInTheFirstPassAndTheSpreadInTheSecond) {
  const auto record = example(20, 10);
  const auto rows = collapse_rows(record)[1].rows;
  auto sums = collapse_sums(record, kAmple, 7)[1];
  sums.sums->update(rows, record.labels);
  NamedTensors state;
  sums.add_state(state);
  EXPECT_EQ(state.size(), 2U);
  EXPECT_EQ(state.at("conv/class_sums").sizes(), (torch::IntArrayRef{kClasses, 24}));
  sums.start_second_pass(1e-12);
  EXPECT_FALSE(sums.sums.has_value());
  sums.spread->update(rows, record.labels);
  state.clear();
  sums.add_state(state);
  EXPECT_EQ(state.size(), 5U);
  EXPECT_EQ(state.at("conv/class_counts").sum().item<double>(), 20);
}

TEST(CollapseSums, AddUpWhatWasMerged) {
  const auto record = example(20, 10);
  const auto first = samples_of(record, 0, 8);
  const auto second = samples_of(record, 8, 20);
  const auto sums_of = [&](const Record& part) {
    auto sums = collapse_sums(record, kAmple, 7)[2];
    sums.sums->update(collapse_rows(part)[2].rows, part.labels);
    return sums;
  };
  auto merged = sums_of(first);
  merged.merge(sums_of(second));
  expect_close(merged.sums->sums(), sums_of(record).sums->sums(), 1e-12);
  CentreMismatch mismatch{.samples = 3, .from_logits = 2, .from_products = 1};
  mismatch.add({.samples = 30, .from_logits = 20, .from_products = 10});
  EXPECT_EQ(mismatch.samples, 33);
  EXPECT_EQ(mismatch.from_logits, 22);
  EXPECT_EQ(mismatch.from_products, 11);
}

TEST(CollapseSums, OfDifferentLayersCannotBeMerged) {
  auto sums = collapse_sums(example(4, 10), kAmple, 7);
  EXPECT_EQ(error_of([&] { sums[0].merge(sums[1]); }),
            "neural_collapse: can merge only measures of the same layers");
}

}  // namespace kelvin::collapse_sums_test
