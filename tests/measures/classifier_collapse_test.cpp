#include "kelvin/measures/classifier_collapse.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>

#include "tests/support/collapse_example.h"
#include "tests/support/measured.h"
#include "tests/support/tensors.h"

namespace kelvin::classifier_collapse_test {

class ClassifierCollapse : public CollapseExample {};

TEST_F(ClassifierCollapse, OfTheClassifierNeedItsWeight) {
  auto collapse = with_spread(first_pass());
  const auto without = classifier_collapse_readings(collapse);
  EXPECT_TRUE(readings_of(without, "nc3_self_duality").empty());
  collapse.weight = noise({4, 5}, 3);
  const auto readings = classifier_collapse_readings(collapse);
  EXPECT_EQ(readings.size(), without.size() + 2 + 4 + 7 + 1);
  // The weight itself has all four classes, its products with means those three.
  EXPECT_EQ(reading_of(readings, "nc2_weight_equinorm").definition["classes"], 4);
  EXPECT_EQ(reading_of(readings, "nc3_dual_etf_error").definition["classes"], 3);
  EXPECT_DOUBLE_EQ(reading_of(readings, "nc1_trace_pinv_unscaled").value,
                   3 * reading_of(readings, "nc1_trace_pinv").value);
  EXPECT_NEAR(reading_of(readings, "nc2_product_etf_error").value,
              reading_of(readings, "nc3_dual_etf_error").value / 9, 1e-15);
}

TEST_F(ClassifierCollapse, AroundTheMeanOfSamplesAreTheSameIfClassesAreOfOneSize) {
  auto collapse = with_spread(first_pass());
  collapse.weight = noise({4, 5}, 3);
  const auto readings = classifier_collapse_readings(collapse);
  for (const std::string name :
       {"nc1_trace_pinv", "nc1_trace_ratio", "nc2_etf_error", "nc3_dual_etf_error"}) {
    const auto weighted = reading_of(readings, name + "_weighted_mean");
    EXPECT_NEAR(weighted.value, reading_of(readings, name).value, 1e-12) << name;
    EXPECT_EQ(weighted.definition["centring"], "mean of all samples");
  }
}

// A mean along the first axis against class means along the axes: the cosine is 1 for one of three.
TEST_F(ClassifierCollapse, HasOrthoDevOfEveryOodDataset) {
  ClassSums axes(3, 3);
  axes.update(torch::eye(3, torch::kFloat64), torch::arange(3));
  ClassSums ood(1, 3);
  ood.update(torch::tensor({{2.0, 0.0, 0.0}, {4.0, 0.0, 0.0}}), torch::zeros({2}, torch::kInt64));
  Collapse collapse{.split = "train",
                    .classes = 3,
                    .features = 3,
                    .width = 3,
                    .cutoff = 1e-12,
                    .centres = ClassCentres(axes)};
  collapse.ood.emplace("stars", ood);
  const auto found = reading_of(classifier_collapse_readings(collapse), "orthodev");
  EXPECT_EQ(found.ood, "stars");
  EXPECT_NEAR(found.value, 1.0 / 3, 1e-12);
  EXPECT_EQ(found.definition["ood_samples"], 2);
}

}  // namespace kelvin::classifier_collapse_test
