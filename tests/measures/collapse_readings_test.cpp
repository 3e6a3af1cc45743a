#include "kelvin/measures/collapse_readings.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "kelvin/measures/classifier_collapse.h"
#include "tests/support/collapse_example.h"
#include "tests/support/measured.h"

namespace kelvin::collapse_readings_test {

class CollapseReadings : public CollapseExample {};

using Names = std::vector<std::string>;

TEST_F(CollapseReadings, OfALayerAreThoseOfItsFeatures) {
  auto collapse = with_spread(first_pass());
  collapse.layer = "conv1";
  collapse.own = {.samples = 9, .from_logits = 2};
  const auto readings = layer_collapse_readings(collapse);
  EXPECT_EQ(names(readings), (Names{"nc1_trace_pinv", "nc1_trace_ratio", "nc1_cdnv", "nc2_equinorm",
                                    "nc2_equiangular", "nc2_etf_error", "nc4_ncc_mismatch"}));
  for (const auto& reading : readings) {
    EXPECT_EQ(reading.layer, "conv1");
    EXPECT_EQ(reading.split, "train");
    EXPECT_EQ(reading.definition["classes"], 3);
    EXPECT_EQ(reading.definition["missing_classes"], 1);
    EXPECT_EQ(reading.definition["matrix"], "features of the layer (sample x feature)");
  }
  EXPECT_NEAR(readings.back().value, 2.0 / 9, 1e-15);
}

TEST_F(CollapseReadings, AfterOnePassAreThoseOfTheMeans) {
  const auto readings = layer_collapse_readings(first_pass());
  EXPECT_EQ(names(readings), (Names{"nc2_equinorm", "nc2_equiangular", "nc2_etf_error"}));
  EXPECT_EQ(readings[0].definition["passes"], 1);
}

TEST_F(CollapseReadings, OfOtherSamplesSayWhoseMeansTheyAreMeasuredWith) {
  auto collapse = with_spread(first_pass());
  collapse.own = {.samples = 9, .from_logits = 2};
  collapse.test = {.samples = 20, .from_logits = 5};
  const auto readings = readings_of(layer_collapse_readings(collapse), "nc4_ncc_mismatch");
  ASSERT_EQ(readings.size(), 2U);
  EXPECT_EQ(readings[0].split, "train");
  EXPECT_FALSE(readings[0].definition.contains("means"));
  EXPECT_EQ(readings[1].split, "test");
  EXPECT_EQ(readings[1].value, 0.25);
  EXPECT_EQ(readings[1].definition["samples"], 20);
  EXPECT_EQ(readings[1].definition["means"], "of the training split");
}

TEST_F(CollapseReadings, OfProjectedFeaturesSaySo) {
  auto collapse = with_spread(first_pass());
  collapse.features = 500;
  for (const auto& reading : layer_collapse_readings(collapse)) {
    EXPECT_EQ(reading.definition["projected_to"], 5);
    EXPECT_EQ(reading.definition["features"], 500);
  }
}

TEST_F(CollapseReadings, OfTracesDoNotDependOnTheCutoff) {
  auto coarse = first_pass();
  coarse.cutoff = 0.9;
  coarse = with_spread(coarse);
  const auto all = with_spread(first_pass());
  ASSERT_LT(coarse.spread->directions(), all.spread->directions());
  for (const char* name : {"nc1_trace_ratio", "nc1_trace_ratio_weighted_mean"}) {
    EXPECT_NEAR(reading_of(classifier_collapse_readings(coarse), name).value,
                reading_of(classifier_collapse_readings(all), name).value, 1e-12)
        << name;
  }
}

TEST_F(CollapseReadings, InvertNoMoreDirectionsThanCentredMeansHave) {
  auto noisy = first_pass();
  noisy.cutoff = 1e-300;  // rounding passes as a direction
  noisy = with_spread(noisy);
  ASSERT_EQ(noisy.spread->directions(), 3);
  const auto found = reading_of(layer_collapse_readings(noisy), "nc1_trace_pinv");
  const auto expected =
      reading_of(layer_collapse_readings(with_spread(first_pass())), "nc1_trace_pinv");
  EXPECT_EQ(found.definition["directions"], 2);
  EXPECT_NEAR(found.value, expected.value, 1e-9 * expected.value);
}

}  // namespace kelvin::collapse_readings_test
