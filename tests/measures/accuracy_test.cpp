#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/measured.h"
#include "tests/support/tensors.h"

namespace kelvin::accuracy_test {

Record small_record(Split split = Split::test) {
  return record_of(torch::tensor({{2.F, 0.F}, {0.F, 1.F}, {3.F, -1.F}}), labels_of({0, 0, 0}),
                   split);
}

TEST(Accuracy, IsTheShareOfRightAnswers) {
  const auto reading = reading_of(measured("accuracy", {small_record()}), "accuracy");
  EXPECT_DOUBLE_EQ(reading.value, 2. / 3);
  EXPECT_EQ(reading.split, "test");
  EXPECT_EQ(reading.definition["samples"], 3);
}

TEST(Accuracy, LikelihoodIsTakenAtTheTrainingTemperature) {
  for (const double temperature : {0.5, 1.0, 10.0}) {
    const auto readings = measured("accuracy", {small_record()}, {}, {.temperature = temperature});
    const auto loss = [&](double margin) { return std::log1p(std::exp(-margin / temperature)); };
    EXPECT_NEAR(reading_of(readings, "nll", {{"temperature", temperature}}).value,
                (loss(2) + loss(-1) + loss(4)) / 3, 1e-12);
  }
}

TEST(Accuracy, LikelihoodStaysFiniteForHugeLogits) {
  const auto record = record_of(torch::tensor({{1e6F, 0.F}}), labels_of({1}));
  const auto readings = measured("accuracy", {record}, {}, {.temperature = 1e-3});
  EXPECT_NEAR(reading_of(readings, "nll").value, 1e9, 1);
}

TEST(Accuracy, KeepsTheSplitsApart) {
  const auto train =
      record_of(torch::tensor({{0.F, 1.F}, {0.F, 1.F}}), labels_of({1, 1}), Split::train);
  const auto readings = measured("accuracy", {small_record(), train, small_record()});
  const auto accuracies = readings_of(readings, "accuracy");
  ASSERT_EQ(accuracies.size(), 2U);
  EXPECT_EQ(accuracies[0].split, "train");
  EXPECT_EQ(accuracies[0].value, 1);
  EXPECT_EQ(accuracies[0].definition["samples"], 2);
  EXPECT_EQ(accuracies[1].split, "test");
  EXPECT_DOUBLE_EQ(accuracies[1].value, 2. / 3);
  EXPECT_EQ(accuracies[1].definition["samples"], 6);
}

TEST(Accuracy, WeighsSamplesAndNotBatches) {
  const auto whole = record_of(noise({10, 3}, 0), torch::arange(10) % 3);
  const auto first = record_of(whole.logits.slice(0, 0, 2), whole.labels.slice(0, 0, 2));
  const auto rest = record_of(whole.logits.slice(0, 2), whole.labels.slice(0, 2));
  expect_same(measured("accuracy", {first, rest}), measured("accuracy", {whole}), 1e-14);
}

TEST(Accuracy, IgnoresOodSamples) {
  auto ood = small_record();
  ood.ood = "textures";
  expect_same(measured("accuracy", {small_record(), ood}), measured("accuracy", {small_record()}));
}

TEST(Accuracy, RejectsAnEmptyStream) {
  EXPECT_EQ(error_of([] { measured("accuracy", {}); }), "accuracy: no records were shown");
}

}  // namespace kelvin::accuracy_test
