#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "kelvin/measures/detectors/detector.h"
#include "tests/support/errors.h"
#include "tests/support/measured.h"
#include "tests/support/tensors.h"

namespace kelvin {
namespace {

torch::Tensor msp_scores(const torch::Tensor& logits, double temperature = 1) {
  Settings settings("detector.msp", {});
  const auto detector = detectors().find("msp").make({.temperature = temperature}, settings);
  return detector->score(record_of(logits, torch::zeros({logits.size(0)}, torch::kInt64)));
}

TEST(MaximumProbability, IsTheLogarithmOfTheLargestProbability) {
  const auto logits = torch::stack({doubles({0, std::log(2), std::log(5)}), doubles({1, 1, 1})});
  expect_close(msp_scores(logits), doubles({std::log(5. / 8), std::log(1. / 3)}), 1e-14);
}

TEST(MaximumProbability, DividesByTheTrainingTemperature) {
  const auto logits = doubles({0, 2 * std::log(3)}).unsqueeze(0);
  expect_close(msp_scores(logits, 2), doubles({std::log(0.75)}), 1e-14);
  expect_close(msp_scores(logits, 0.5), doubles({std::log(81. / 82)}), 1e-14);
}

TEST(MaximumProbability, IgnoresAConstantPerSampleAndTheOrderOfClasses) {
  const auto logits = noise({20, 6}, 0);
  const auto scores = msp_scores(logits);
  expect_close(msp_scores(logits + 9 * noise({20, 1}, 1)), scores, 1e-12);
  expect_close(msp_scores(logits.flip(1)), scores, 1e-12);
}

TEST(MaximumProbability, TellsConfidentSamplesApart) {
  // Each of these probabilities is 1 in double precision.
  const auto margins = doubles({40, 50, 100, 500});
  const auto scores = msp_scores(torch::stack({margins, torch::zeros_like(margins)}, 1));
  expect_close(scores / -(-margins).exp(), torch::ones({4}), 1e-12);
}

TEST(MaximumProbability, SurvivesHugeLogitsAtATinyTemperature) {
  const auto scores = msp_scores(torch::tensor({{1e6F, 0.F}, {1e6F, 1e6F}}), 1e-3);
  expect_close(scores, doubles({0, std::log(0.5)}), 1e-14);
}

TEST(MaximumProbability, OfASingleClassIsCertain) {
  expect_close(msp_scores(torch::tensor({{3.F}, {-2.F}})), doubles({0, 0}), 0);
}

TEST(MaximumProbability, RejectsATemperatureThatIsNotAboveZero) {
  EXPECT_NE(error_of([] {
              msp_scores(torch::ones({1, 2}), 0);
            }).find(": temperature must be a finite number above 0, got 0"),
            std::string::npos);
}

}  // namespace
}  // namespace kelvin
