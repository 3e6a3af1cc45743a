#include "kelvin/experiment/run_data.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/support/errors.h"

namespace kelvin {
namespace {

RunSettings settings_with(const std::map<std::string, Value>& values) {
  Config config;
  config.set("data.name", "glyphs10");
  config.set("data.train_samples", 20);
  config.set("data.test_samples", 10);
  config.set("model.name", "mlp");
  for (const auto& [key, value] : values) config.set(key, value);
  return RunSettings::from(config);
}

TEST(RunData, AreTheDatasetAndTheForeignOnesInItsShape) {
  const auto settings = settings_with(
      {{"data.ood", std::vector<std::string>{"textures10"}}, {"data.image_size", 16}});
  const auto data = load_run_data(settings, {});
  EXPECT_EQ(data.own.name, "glyphs10");
  EXPECT_EQ(data.own.train.size(), 20);
  ASSERT_EQ(data.foreign.size(), 1U);
  EXPECT_EQ(data.foreign[0].name, "textures10");
  EXPECT_EQ(data.foreign[0].test.shape().height, data.own.test.shape().height);
  EXPECT_EQ(data.foreign[0].test.shape().channels, data.own.test.shape().channels);
}

TEST(RunData, RefusesMeasuresThatTheModelOrTheMomentCannotServe) {
  const auto refusal = [](const char* key, const char* measure) {
    const auto settings = settings_with({{key, std::vector<std::string>{measure}}});
    const auto data = load_run_data(settings, {});
    const auto model = settings.build_model(shape_for(data.own));
    return error_of([&] { check_measures(settings, *model, data); });
  };
  EXPECT_EQ(refusal("measure.names", "attention_rank"),
            "measure.names: 'attention_rank' needs a model with attention, 'mlp' has none");
  EXPECT_TRUE(refusal("measure.during", "linear_probe")
                  .starts_with("measure.during: 'linear_probe' is fitted to"));
  const auto settings =
      settings_with({{"measure.names", std::vector<std::string>{"linear_probe"}}});
  const auto data = load_run_data(settings, {});
  EXPECT_NO_THROW(check_measures(settings, *settings.build_model(shape_for(data.own)), data));
}

}  // namespace
}  // namespace kelvin
