#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/measured.h"
#include "tests/support/tensors.h"

namespace kelvin::logits_norm_test {

Record small_record() {
  return record_of(torch::tensor({{3.F, -4.F}, {0.F, 12.F}}), labels_of({0, 1}));
}

TEST(LogitsNorm, IsTheFrobeniusNormRawOverTAndPerSample) {
  const auto readings = measured("logits_norm", {small_record()}, {}, {.temperature = 4});
  EXPECT_DOUBLE_EQ(reading_of(readings, "logits_norm", {{"samples", 2}}).value, 13);
  EXPECT_DOUBLE_EQ(reading_of(readings, "logits_norm_over_t", {{"temperature", 4}}).value, 13. / 4);
  EXPECT_DOUBLE_EQ(reading_of(readings, "logits_norm_per_sample").value, 13 / std::sqrt(2));
  for (const auto& reading : readings) {
    EXPECT_EQ(reading.split, "test") << reading.name;
    EXPECT_EQ(reading.definition["bias"], true) << reading.name;
    EXPECT_EQ(reading.definition["shift_free"], false) << reading.name;
    EXPECT_TRUE(reading.definition.contains("precision")) << reading.name;
  }
}

TEST(LogitsNorm, PerSampleIgnoresHowOftenASampleIsShown) {
  const auto once = measured("logits_norm", {small_record()});
  const auto thrice = measured("logits_norm", {small_record(), small_record(), small_record()});
  EXPECT_DOUBLE_EQ(reading_of(thrice, "logits_norm_per_sample").value,
                   reading_of(once, "logits_norm_per_sample").value);
  EXPECT_DOUBLE_EQ(reading_of(thrice, "logits_norm").value, 13 * std::sqrt(3));
}

TEST(LogitsNorm, ScalesWithTheLogits) {
  const auto logits = noise({20, 5}, 0);
  const auto labels = torch::zeros({20}, torch::kInt64);
  const auto plain = measured("logits_norm", {record_of(logits, labels)});
  const auto scaled = measured("logits_norm", {record_of(-7 * logits, labels)});
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_NEAR(scaled[i].value, 7 * plain[i].value, 1e-11) << plain[i].name;
  }
}

TEST(LogitsNorm, OfZerosIsZero) {
  const auto readings =
      measured("logits_norm", {record_of(torch::zeros({2, 3}), labels_of({0, 1}))});
  ASSERT_EQ(readings.size(), 3U);
  for (const auto& reading : readings) EXPECT_EQ(reading.value, 0) << reading.name;
}

TEST(LogitsNorm, IgnoresTrainingAndOodSamples) {
  auto train = small_record();
  train.split = Split::train;
  auto ood = small_record();
  ood.ood = "textures";
  expect_same(measured("logits_norm", {train, small_record(), ood}),
              measured("logits_norm", {small_record()}));
  EXPECT_EQ(error_of([&] {
              measured("logits_norm", {train, ood});
            }),
            "logits_norm: no records of the test split were shown");
}

}  // namespace kelvin::logits_norm_test
