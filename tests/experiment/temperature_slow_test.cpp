#include <gtest/gtest.h>
#include <torch/torch.h>

#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/experiment/evaluate/measure_model.h"
#include "kelvin/train/train.h"

namespace kelvin::temperature_slow_test {

// The demo's network at one temperature, rate 1, seed 3.
Readings readings_at(double temperature) {
  Config config;
  config.set("seed", 3);
  config.set("model.width", 0.25);
  config.set("model.stem_stride", 2);
  config.set("train.temperature", temperature);
  config.set("train.lr", 1.0);
  config.set("train.epochs", 5);
  config.set("train.weight_decay", 0.0);
  const auto settings = RunSettings::from(config);
  const auto dataset = load_dataset(settings.dataset, settings.request);
  const auto model = settings.build_model(shape_for(settings, dataset));
  train(*model, dataset, settings.train, {}, [] { return false; });
  return measure_model(*model, dataset, {}, settings, {}).readings;
}

double value_of(const Readings& readings, const std::string& name) {
  for (const auto& reading : readings) {
    if (reading.name == name && reading.split == "test") return reading.value;
  }
  ADD_FAILURE() << "no " << name;
  return 0;
}

TEST(TemperatureSlow, LowersTheRankOfTheLogitsAtEqualAccuracy) {
  const auto low = readings_at(1);
  const auto high = readings_at(10);
  EXPECT_GT(value_of(low, "accuracy"), 0.94);
  EXPECT_GT(value_of(high, "accuracy"), 0.94);
  EXPECT_LT(value_of(high, "solution_rank"), value_of(low, "solution_rank") - 10);
  EXPECT_GT(value_of(high, "logits_norm"), 2 * value_of(low, "logits_norm"));
}

}  // namespace kelvin::temperature_slow_test
