#include "kelvin/measures/detectors/detector.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>

#include "tests/support/errors.h"
#include "tests/support/measured.h"
#include "tests/support/tensors.h"

namespace kelvin {
namespace {

// Features and logits of a classifier; the logits depend on the features alone.
Record classified(int64_t samples, uint64_t seed) {
  const auto features = noise({samples, 6}, seed);
  const auto weight = noise({4, 6}, 100);
  auto record = record_of(features.matmul(weight.t()).to(torch::kFloat32),
                          torch::arange(samples) % 4, Split::train);
  record.features = features.to(torch::kFloat32);
  record.weight = weight.to(torch::kFloat32);
  record.bias = torch::zeros({4});
  return record;
}

Record part_of(const Record& whole, int64_t begin, int64_t end) {
  auto part = whole;
  for (auto* tensor : {&part.logits, &part.labels, &part.features}) {
    *tensor = tensor->slice(0, begin, end);
  }
  return part;
}

class EveryDetector : public testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<Detector> fitted() {
    Settings settings("detector." + GetParam(), {});
    auto detector = detectors().find(GetParam()).make({.temperature = 2}, settings);
    detector->fit(classified(40, 0));
    return detector;
  }
};

TEST_P(EveryDetector, HasASummaryAndAReference) {
  EXPECT_FALSE(detectors().find(GetParam()).summary.empty());
  EXPECT_FALSE(detectors().find(GetParam()).reference.empty());
}

TEST_P(EveryDetector, GivesOneFiniteDoublePerSample) {
  const auto scores = fitted()->score(classified(15, 1));
  EXPECT_EQ(scores.sizes(), torch::IntArrayRef({15}));
  EXPECT_EQ(scores.scalar_type(), torch::kFloat64);
  EXPECT_TRUE(torch::isfinite(scores).all().item<bool>());
  EXPECT_GT(scores.std().item<double>(), 0);
}

TEST_P(EveryDetector, ScoresASampleWhateverElseIsInTheBatch) {
  const auto detector = fitted();
  const auto whole = classified(15, 2);
  const auto in_parts =
      torch::cat({detector->score(part_of(whole, 0, 1)), detector->score(part_of(whole, 1, 15))});
  expect_close(in_parts, detector->score(whole), 1e-12);
}

TEST_P(EveryDetector, SaysWhatItsScoreIs) {
  const auto definition = fitted()->definition();
  ASSERT_TRUE(definition.is_object());
  EXPECT_TRUE(definition.contains("score"));
}

INSTANTIATE_TEST_SUITE_P(Detectors, EveryDetector, testing::Values("msp", "neco"),
                         [](const auto& info) { return info.param; });

TEST(Detectors, RejectsAnUnknownNameAndSuggestsTheNearest) {
  EXPECT_EQ(error_of([] {
              detectors().find("nevo");
            }).find("no detector named 'nevo'; did you mean 'neco'?"),
            0U);
}

}  // namespace
}  // namespace kelvin
