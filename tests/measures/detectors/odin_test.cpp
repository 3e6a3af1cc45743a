#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/detectors.h"
#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::odin_test {

torch::Tensor odin_scores(const torch::Tensor& logits, const Values& values = {},
                          double temperature = 1) {
  return unfitted_scores("odin", logits_record(logits), values, temperature);
}

TEST(Odin, IsTheLargestProbabilityAtAThousandTimesTheTemperature) {
  const auto logits = torch::stack({doubles({0, 2000 * std::log(3)}), doubles({4, 4})});
  expect_close(odin_scores(logits, {}, 2), doubles({std::log(0.75), std::log(0.5)}), 1e-14);
}

TEST(Odin, IsThatOfSciPy) {
  const auto logits = 20 * noise({50, 8}, 0);
  const auto expected = oracle(R"(
from scipy.special import log_softmax
out["published"] = log_softmax(x["logits"] / 1000, axis=1).max(axis=1)
out["other"] = log_softmax(x["logits"] / (10 * 5), axis=1).max(axis=1)
)",
                               {{"logits", logits}});
  expect_close(odin_scores(logits), expected.at("published"), 1e-12);
  expect_close(odin_scores(logits, {{"scale", 10}}, 5), expected.at("other"), 1e-12);
}

TEST(Odin, WithAScaleOfOneIsTheMaximumProbability) {
  const auto logits = 5 * noise({20, 6}, 1);
  expect_close(odin_scores(logits, {{"scale", 1}}, 3),
               unfitted_scores("msp", logits_record(logits), {}, 3), 0);
}

TEST(Odin, OfASingleClassIsCertain) {
  expect_close(odin_scores(torch::tensor({{3.}, {-2.}})), doubles({0, 0}), 0);
}

TEST(Odin, SaysThatInputsAreNotPerturbed) {
  const auto definition = make_detector("odin", {}, 5)->definition();
  EXPECT_EQ(definition["perturbed_inputs"], false);
  EXPECT_EQ(definition["scale"], 1000);
  EXPECT_EQ(definition["temperature"], 5);
}

TEST(Odin, RejectsOptionsOutOfRange) {
  EXPECT_EQ(error_of([] {
              make_detector("odin", {{"scale", 0}});
            }),
            "detector.odin.scale: must be above 0, and finite times the temperature of 1, got 0");
  EXPECT_EQ(error_of([] {
              make_detector("odin", {{"scale", 1e300}}, 1e10);
            }),
            "detector.odin.scale: must be above 0, and finite times the temperature of 1e+10, got "
            "1e+300");
  EXPECT_EQ(error_of([] { make_detector("odin", {}, 0); }),
            "odin: temperature must be a finite number above 0, got 0");
}

}  // namespace kelvin::odin_test
