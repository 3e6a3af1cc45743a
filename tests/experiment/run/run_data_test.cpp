#include "kelvin/experiment/run/run_data.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "kelvin/formats/png_file.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin::run_data_test {

RunSettings settings_with(const std::map<std::string, Value>& values) {
  Config config;
  config.set("data.name", "glyphs10");
  config.set("data.train_samples", 20);
  config.set("data.test_samples", 10);
  config.set("model.name", "mlp");
  for (const auto& [key, value] : values) config.set(key, value);
  return RunSettings::from(config);
}

TEST(RunData, AreTheDatasetAndTheOodOnesInItsShape) {
  const auto settings = settings_with(
      {{"data.ood", std::vector<std::string>{"textures10"}}, {"data.image_size", 16}});
  const auto data = load_run_data(settings, {});
  EXPECT_EQ(data.own.name, "glyphs10");
  EXPECT_EQ(data.own.train.size(), 20);
  ASSERT_EQ(data.ood.size(), 1U);
  EXPECT_EQ(data.ood[0].name, "textures10");
  EXPECT_EQ(data.ood[0].test.shape().height, data.own.test.shape().height);
  EXPECT_EQ(data.ood[0].test.shape().channels, data.own.test.shape().channels);
}

// OOD pictures, one of each class in both splits.
class OodPictures : public testing::Test {
 protected:
  std::string with_classes(int classes) const {
    for (int i = 0; i < classes; ++i) {
      for (const std::string split : {"train/", "val/"}) {
        const auto kind = folder_.path() / "photos" / (split + std::to_string(i));
        std::filesystem::create_directories(kind);
        write_png(kind / "1.png", {.width = 1, .height = 1, .rgb = std::vector<uint8_t>{1, 2, 3}});
      }
    }
    return "imagefolder:" + (folder_ / "photos");
  }

  // Ten classes of glyphs, and so many training samples of each dataset shown to measures.
  static void check_for(const std::string& measure, const std::string& ood, int64_t samples) {
    const auto settings = settings_with({{"data.image_size", 8},
                                         {"data.ood", std::vector<std::string>{ood}},
                                         {"measure.names", std::vector<std::string>{measure}},
                                         {"measure.train_samples", samples}});
    const auto data = load_run_data(settings, {});
    check_measures(settings, *settings.build_model(shape_for(settings, data.own)), data);
  }

  TemporaryFolder folder_;
};

// Before anything is trained or fitted.
TEST_F(OodPictures, OfOneClassAreRefusedToProbes) {
  const auto name = with_classes(1);
  EXPECT_EQ(error_of([&] { check_for("linear_probe", name, 20); }),
            "dataset '" + name +
                "': must have at least 2 classes for 'linear_probe' to tell apart, has 1");
  EXPECT_NO_THROW(check_for("neural_collapse", name, 20));
}

TEST_F(OodPictures, OfMoreClassesThanAreShownAreRefusedToProbes) {
  const auto name = with_classes(11);
  EXPECT_EQ(error_of([&] { check_for("linear_probe", name, 10); }),
            "dataset '" + name +
                "': must show at least as many training samples as it has classes, 11, for "
                "'linear_probe' to be fitted to, shows 10");
  EXPECT_NO_THROW(check_for("linear_probe", name, 11));
  EXPECT_NO_THROW(check_for("neural_collapse", name, 9));
  EXPECT_EQ(error_of([&] { check_for("linear_probe", name, 9); }),
            "dataset 'glyphs10': must show at least as many training samples as it has classes, "
            "10, for 'linear_probe' to be fitted to, shows 9");
}

TEST(RunData, RefusesMeasuresThatTheModelOrTheMomentCannotServe) {
  const auto refusal = [](const char* key, const char* measure) {
    const auto settings = settings_with({{key, std::vector<std::string>{measure}}});
    const auto data = load_run_data(settings, {});
    const auto model = settings.build_model(shape_for(settings, data.own));
    return error_of([&] { check_measures(settings, *model, data); });
  };
  EXPECT_EQ(refusal("measure.names", "attention_rank"),
            "measure.names: 'attention_rank' needs a model with attention, 'mlp' has none");
  EXPECT_TRUE(refusal("measure.during", "linear_probe")
                  .starts_with("measure.during: 'linear_probe' is fitted to"));
  const auto settings =
      settings_with({{"measure.names", std::vector<std::string>{"linear_probe"}}});
  const auto data = load_run_data(settings, {});
  EXPECT_NO_THROW(
      check_measures(settings, *settings.build_model(shape_for(settings, data.own)), data));
}

}  // namespace kelvin::run_data_test
