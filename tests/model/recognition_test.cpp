#include "kelvin/model/recognition.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>

#include "kelvin/model/weights.h"
#include "tests/support/built_model.h"
#include "tests/support/errors.h"

namespace kelvin::recognition_test {

Recognised recognised(const std::string& name, const Values& values, const ModelShape& shape = {}) {
  return recognised_model(weights_of(*built_model(name, values, shape)), "x.pt");
}

TEST(Recognition, TellsDepthWidthAndClassesOfAResnet) {
  const auto found = recognised("resnet18", {{"width", 0.25}}, {.classes = 100});
  EXPECT_EQ(found.model, "resnet18");
  EXPECT_EQ(found.settings, (Values{{"width", 0.25}}));
  EXPECT_EQ(found.classes, 100);
  EXPECT_EQ(found.channels, 3);
  EXPECT_EQ(recognised("resnet32", {}).model, "resnet32");
}

TEST(Recognition, TellsShortcutsAndBiases) {
  EXPECT_EQ(recognised("resnet20", {{"shortcut", "B"}}).settings, (Values{{"shortcut", "B"}}));
  EXPECT_EQ(recognised("resnet20", {{"bias", false}}).settings, (Values{{"bias", false}}));
}

TEST(Recognition, TellsTheDepthOfAnMlp) {
  const ModelShape digits = {.channels = 1, .height = 28, .width = 28, .classes = 10};
  const auto found = recognised("mlp", {{"width", 96}, {"depth", 4}}, digits);
  EXPECT_EQ(found.model, "mlp");
  EXPECT_EQ(found.settings, (Values{{"width", 96}, {"depth", 4}}));
}

TEST(Recognition, TellsPatchesAndDepthOfAVit) {
  const ModelShape shape = {.channels = 3, .height = 48, .width = 48, .classes = 7};
  const auto found = recognised("vit_tiny", {{"patch", 8}, {"depth", 2}}, shape);
  EXPECT_EQ(found.model, "vit_tiny");
  EXPECT_EQ(found.settings, (Values{{"patch", 8}, {"depth", 2}}));
  EXPECT_EQ(found.image_side, 48);
}

// Heads leave no trace in names and shapes.
TEST(Recognition, AsksWhereTwoFit) {
  const auto message = error_of([] { recognised("vit_tiny", {{"width", 0.5}, {"depth", 1}}); });
  EXPECT_TRUE(message.starts_with("x.pt: fits vit_")) << message;
  EXPECT_TRUE(message.ends_with("; say which with --model")) << message;
}

TEST(Recognition, ReadsNamesOfOtherLibraries) {
  NamedTensors wrapped;
  for (const auto& [name, tensor] : weights_of(*built_model("resnet20"))) {
    wrapped["module." + name] = tensor;
  }
  EXPECT_EQ(recognised_model(wrapped, "x.pt").model, "resnet20");
}

// Tensors without numbers may claim any size.
TEST(Recognition, BelievesNoSizesOfEmptyTensors) {
  const auto huge = torch::empty({0, int64_t{1} << 60});
  EXPECT_TRUE(recognised_models({{"a.0.weight", huge}}).empty());
  const auto patches = torch::zeros({8, 3, 4, 4});
  EXPECT_TRUE(recognised_models(
                  {{"patch_embed.proj.weight", patches}, {"pos_embed", torch::zeros({1, 0, 8})}})
                  .empty());
}

TEST(Recognition, SaysThatNothingFits) {
  auto tensors = weights_of(*built_model("resnet20"));
  tensors["extra.weight"] = torch::zeros({2, 2});
  EXPECT_EQ(error_of([&] { recognised_model(tensors, "x.pt"); }),
            "x.pt: its " + std::to_string(tensors.size()) +
                " tensors fit no architecture that kelvin knows; name one with --model, or save "
                "the network with torch.jit.save");
}

}  // namespace kelvin::recognition_test
