#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/support/collapse_records.h"
#include "tests/support/errors.h"

namespace kelvin::neural_collapse_passes_test {

TEST(NeuralCollapseMeasure, DependsNeitherOnTheOrderNorOnTheBatches) {
  const auto whole = some_record(60, 1);
  const auto expected = collapse_of({whole});
  expect_relative(collapse_of(batches_of(whole, 7)), expected, 1e-9);
  const auto shuffled = collapse_part(whole, noise({60}, 5).argsort());
  expect_relative(collapse_of({shuffled}), expected, 1e-9);
}

TEST(NeuralCollapseMeasure, TakesTheTestSplitIfThereIsNoOther) {
  auto test = some_record(60, 1);
  test.split = Split::test;
  const auto ood = some_record(20, 3, Split::test, "textures");
  const auto readings = measured("neural_collapse", {test, ood});
  const auto expected = collapse_of({some_record(60, 1)}, {ood});
  ASSERT_EQ(readings.size(), expected.size());
  for (size_t i = 0; i < readings.size(); ++i) {
    EXPECT_EQ(readings[i].name, expected[i].name);
    EXPECT_EQ(readings[i].split, "test");
    EXPECT_EQ(readings[i].definition["split"], "test, because no training samples were shown");
    EXPECT_EQ(readings[i].definition["passes"], 2);
    EXPECT_NEAR(readings[i].value, expected[i].value, 1e-12) << readings[i].name;
  }
}

TEST(NeuralCollapseMeasure, PrefersTheTrainingSplitWheneverItComes) {
  const auto train = some_record(60, 1);
  const auto test = some_record(30, 2, Split::test);
  const auto measure = make_measure("neural_collapse");
  measure->update(test);
  show_twice(*measure, {train}, {test});
  expect_same(measure->compute(), collapse_of({train}, {test}));
}

TEST(NeuralCollapseMeasure, AsksForOneSecondPassOnly) {
  const auto train = some_record(60, 1);
  const auto measure = make_measure("neural_collapse");
  EXPECT_FALSE(measure->wants_train_again());
  measure->update(train);
  EXPECT_FALSE(measure->wants_another_pass());
  EXPECT_TRUE(measure->wants_train_again());
  measure->update(train);
  EXPECT_FALSE(measure->wants_train_again());
  EXPECT_FALSE(measure->wants_another_pass());
  const auto expected = measure->compute();
  // What others ask for is not counted again.
  measure->update(train);
  EXPECT_FALSE(measure->wants_train_again());
  expect_same(measure->compute(), expected);
}

TEST(NeuralCollapseMeasure, GivesAfterOnePassWhatMeansAloneTell) {
  const auto train = some_record(60, 1);
  const auto measure = make_measure("neural_collapse");
  measure->update(train);
  const auto readings = measure->compute();
  const auto expected = collapse_of({train});
  for (const auto& reading : expected) {
    const bool needs_spread =
        reading.name.starts_with("nc1") || reading.name.starts_with("nc4_ncc");
    EXPECT_EQ(has_reading(readings, reading.name, reading.layer), !needs_spread) << reading.name;
    if (needs_spread) continue;
    EXPECT_EQ(layer_value(readings, reading.name, reading.layer), reading.value);
    EXPECT_EQ(layer_reading(readings, reading.name, reading.layer).definition["passes"], 1);
  }
}

TEST(NeuralCollapseMeasure, MergesHalvesOfEachPass) {
  const auto whole = some_record(60, 1);
  const auto test = some_record(30, 2, Split::test);
  const auto halves = batches_of(whole, 35);
  const auto test_halves = batches_of(test, 20);
  const auto first_pass = make_measure("neural_collapse");
  const auto other = make_measure("neural_collapse");
  first_pass->update(halves[0]);
  other->update(halves[1]);
  first_pass->merge(*other);
  // Both go on with the means of the whole.
  ASSERT_TRUE(first_pass->wants_train_again());
  const auto left = make_measure("neural_collapse");
  const auto right = make_measure("neural_collapse");
  left->merge(*first_pass);
  right->merge(*first_pass);
  left->update(halves[0]);
  right->update(halves[1]);
  EXPECT_FALSE(left->wants_train_again());
  left->update(test_halves[0]);
  right->update(test_halves[1]);
  left->merge(*right);
  expect_relative(left->compute(), collapse_of({whole}, {test}), 1e-9);
}

TEST(NeuralCollapseMeasure, MergesOodSamplesOfTheTestSplitOnce) {
  auto test = some_record(60, 1);
  test.split = Split::test;
  const auto ood = some_record(20, 3, Split::test, "textures");
  const auto halves = batches_of(test, 35);
  const auto first_pass = make_measure("neural_collapse");
  for (const auto& record : {test, ood}) first_pass->update(record);
  ASSERT_TRUE(first_pass->wants_another_pass());
  const auto left = make_measure("neural_collapse");
  const auto right = make_measure("neural_collapse");
  left->merge(*first_pass);
  right->merge(*first_pass);
  left->update(halves[0]);
  right->update(halves[1]);
  left->merge(*right);
  expect_relative(left->compute(), measured("neural_collapse", {test, ood}), 1e-9);
}

TEST(NeuralCollapseMeasure, RefusesToMergeWhatHasOtherMeans) {
  const auto halves = batches_of(some_record(60, 1), 35);
  const auto one = make_measure("neural_collapse");
  const auto other = make_measure("neural_collapse");
  show_twice(*one, {halves[0]});
  other->update(halves[1]);
  EXPECT_EQ(error_of([&] { one->merge(*other); }),
            "neural_collapse: can merge only measures in the same pass");
  const auto third = make_measure("neural_collapse");
  show_twice(*third, {halves[1]});
  EXPECT_EQ(error_of([&] { one->merge(*third); }),
            "ClassSpread: can merge only what was measured around the same class means");
  auto fewer = halves[1];
  fewer.layers.pop_back();
  const auto fourth = make_measure("neural_collapse");
  fourth->update(fewer);
  EXPECT_EQ(error_of([&] { other->merge(*fourth); }),
            "neural_collapse: can merge only measures of the same layers");
}

TEST(NeuralCollapseMeasure, ProjectsWideLayersIfMemoryIsShort) {
  // Little spread and many features: lengths and angles survive the projection.
  auto record = some_record(40, 1);
  const auto labels = record.labels;
  const auto wide = noise({40, 6000}, 8) + 3 * noise({kClasses, 6000}, 9).index({labels});
  record.layers[0] = output_of("wide", wide.to(torch::kFloat32));
  const MeasureContext small{.memory = 3 * kClasses * 8 * 3100};
  const auto readings = collapse_of(batches_of(record, 15), {}, small);
  const auto expected = collapse_of({record});
  for (const auto& reading : readings) {
    const auto exact = layer_reading(expected, reading.name, reading.layer);
    if (reading.layer != "wide") {
      EXPECT_NEAR(reading.value, exact.value, 1e-9);
      EXPECT_FALSE(reading.definition.contains("projected_to"));
      continue;
    }
    EXPECT_EQ(reading.definition["projected_to"], 3000);
    EXPECT_EQ(reading.definition["features"], 6000);
    EXPECT_FALSE(exact.definition.contains("projected_to"));
    if (reading.name == "nc1_trace_pinv") {
      EXPECT_GT(reading.value, exact.value);
      EXPECT_TRUE(reading.definition.contains("bias_of_projection"));
    } else {
      EXPECT_NEAR(reading.value, exact.value, 0.1 * exact.value + 0.02) << reading.name;
    }
  }
  const auto measure = make_measure("neural_collapse", {}, small);
  EXPECT_EQ(measure->memory(record, 40), kClasses * 8 * (3000 + 8 + 5 + 2 * 3000));
  EXPECT_EQ(make_measure("neural_collapse")->memory(record, 40),
            kClasses * 8 * (6000 + 8 + 5 + 2 * 6000));
}

TEST(NeuralCollapseMeasure, KeepsSumsAndThenTheSpreadAsItsState) {
  const auto train = some_record(60, 1);
  const auto measure = make_measure("neural_collapse");
  measure->update(train);
  auto state = measure->state();
  EXPECT_EQ(state.size(), 6U);
  EXPECT_EQ(state.at("conv/class_sums").sizes(), (torch::IntArrayRef{5, 24}));
  EXPECT_EQ(state.at("/class_counts").sum().item<double>(), 60);
  ASSERT_TRUE(measure->wants_train_again());
  measure->update(train);
  state = measure->state();
  EXPECT_EQ(state.size(), 15U);
  EXPECT_EQ(state.at("conv/within").sizes(), (torch::IntArrayRef{4, 4}));
}

TEST(NeuralCollapseMeasure, RejectsBatchesThatDoNotBelongTogether) {
  const auto train = some_record(60, 1);
  const auto measure = make_measure("neural_collapse");
  measure->update(train);
  auto other = train;
  other.layers[0].name = "stem";
  EXPECT_EQ(error_of([&] { measure->update(other); }),
            "neural_collapse: every batch must have the same layers; layer 'conv' of 24 features "
            "became layer 'stem' of 24");
  other.layers.pop_back();
  EXPECT_EQ(error_of([&] { measure->update(other); }),
            "neural_collapse: every batch must have the same layers, 3, got 2");
  ASSERT_TRUE(measure->wants_train_again());
  measure->update(collapse_part(train, torch::arange(0, 50)));
  EXPECT_EQ(error_of([&] { measure->compute(); }),
            "neural_collapse: the second pass must show the samples of the first, 60, got 50");
}

}  // namespace kelvin::neural_collapse_passes_test
