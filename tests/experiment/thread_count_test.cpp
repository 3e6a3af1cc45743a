#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/experiment/evaluate/measure_model.h"
#include "kelvin/measures/detectors/detector.h"
#include "kelvin/measures/measure.h"
#include "tests/support/threads.h"

namespace kelvin::thread_count_test {

std::string listed(const std::vector<std::string>& names) { return nlohmann::json(names).dump(); }

// All that can be measured of a network that was just built: real layers, real parameters.
class ThreadCountSlow : public testing::TestWithParam<std::string> {
 protected:
  ThreadCountSlow() {
    auto names = measures().names();
    if (GetParam() != "vit_tiny") std::erase(names, "attention_rank");
    Config config;
    for (const auto& each : std::vector<std::string>{
             "data.name=glyphs10", "data.train_samples=1500", "data.test_samples=1100",
             "model.name=" + GetParam(), "model.width=0.125", "measure.train_samples=1500",
             "measure.names=" + listed(names), "measure.detectors=[\"all\"]",
             "measure.linear_probe.max_iterations=3"}) {
      config.apply_override(each);
    }
    settings_.emplace(RunSettings::from(config));
    dataset_ = load_dataset("glyphs10", settings_->request);
    ood_ = load_dataset("textures10", {.train_samples = 600, .test_samples = 1100});
    model_ = settings_->build_model(shape_for(*settings_, dataset_));
  }

  Measured measured(int threads) {
    const ThreadCount count(threads);
    return measure_model(*model_, dataset_, {ood_}, *settings_, {});
  }

  std::optional<RunSettings> settings_;
  Dataset dataset_;
  Dataset ood_;
  std::shared_ptr<Model> model_;
};

// Gradients are float32 sums over samples, which threads share, as in training; all else is float64
// on a forward pass of equal bits.  Rounding of a matrix moves each of its singular values by the
// same amount, that of the largest.
void expect_equal_up_to_rounding(const Readings& actual, const Readings& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  double largest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    auto fields = fields_of(actual[i]);
    auto wanted = fields_of(expected[i]);
    fields.erase("value");
    wanted.erase("value");
    EXPECT_EQ(fields, wanted);
    auto rounding = 1e-9 * std::abs(expected[i].value) + 1e-12;
    if (expected[i].name == "gradient_singular_value") {
      if (expected[i].index == 0) largest = expected[i].value;
      ASSERT_GE(largest, expected[i].value);
      rounding = 2e-6 * largest;
    }
    EXPECT_NEAR(actual[i].value, expected[i].value, rounding) << wanted;
  }
}

TEST_P(ThreadCountSlow, ChangesNoReading) {
  const auto one = measured(1);
  ASSERT_GT(one.readings.size(), 100U);
  for (const int threads : {2, 4}) {
    SCOPED_TRACE(threads);
    const auto several = measured(threads);
    expect_equal_up_to_rounding(several.readings, one.readings);
    ASSERT_EQ(several.scores.size(), one.scores.size());
    for (size_t i = 0; i < one.scores.size(); ++i) {
      SCOPED_TRACE(one.scores[i].detector);
      const auto& expected = one.scores[i].id_scores;
      const auto& actual = several.scores[i].id_scores;
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t k = 0; k < expected.size(); ++k) {
        ASSERT_NEAR(actual[k], expected[k], 1e-9 * std::abs(expected[k]) + 1e-12);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, ThreadCountSlow, testing::Values("resnet10", "vit_tiny"));

}  // namespace kelvin::thread_count_test
