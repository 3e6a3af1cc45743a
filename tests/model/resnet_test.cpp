#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <set>
#include <string>

#include "kelvin/model/model.h"
#include "tests/support/errors.h"

namespace kelvin::resnet_test {

std::shared_ptr<Model> resnet(const std::string& name, double width, int64_t stem_stride = 1,
                              const ModelShape& shape = {}) {
  Settings settings("model", {{"width", width}, {"stem_stride", stem_stride}});
  auto model = models().find(name).build(shape, settings);
  settings.reject_unknown_keys();
  return model;
}

Taps taps_of(Model& model, int64_t side = 32) {
  torch::NoGradGuard no_grad;
  model.eval();
  Taps taps;
  model.forward(torch::randn({1, 3, side, side}), &taps);
  return taps;
}

TEST(ResNet, HasAsManyWeightLayersAsItsNameSays) {
  EXPECT_EQ(taps_of(*resnet("resnet10", 0.125)).layers().size(), 10U);
  EXPECT_EQ(taps_of(*resnet("resnet18", 0.125)).layers().size(), 18U);
}

// 11 173 962 is what PyTorch implementations for CIFAR-10 with a 3x3 stem report.
TEST(ResNet, HasTheParametersOfResNet18ForSmallImages) {
  EXPECT_EQ(parameter_count(*resnet("resnet18", 1)), 11'173'962);
}

// What the papers and their re-implementations report for CIFAR-10: 0.27, 0.46, 0.66 and 0.85
// million.
TEST(ResNet, HasTheParametersOfTheNetworksForCifar) {
  EXPECT_EQ(parameter_count(*resnet("resnet20", 1)), 269'722);
  EXPECT_EQ(parameter_count(*resnet("resnet32", 1)), 464'154);
  EXPECT_EQ(parameter_count(*resnet("resnet44", 1)), 658'586);
  EXPECT_EQ(parameter_count(*resnet("resnet56", 1)), 853'018);
}

TEST(ResNet, HasProjectionsInsteadOfPaddingIfAskedFor) {
  Settings settings("model", {{"shortcut", "B"}});
  const auto model = models().find("resnet20").build({}, settings);
  // 16 to 32 and 32 to 64 channels, each with a normalisation.
  EXPECT_EQ(parameter_count(*model), 269'722 + 16 * 32 + 2 * 32 + 32 * 64 + 2 * 64);
}

TEST(ResNet, ShrinksLargeImagesInItsStem) {
  Settings settings("model", {{"width", 0.125}});
  const ModelShape large{.height = 224, .width = 224};
  const auto model = models().find("resnet18").build(large, settings);
  const auto taps = taps_of(*model, 224);
  EXPECT_EQ(taps.layers()[0].weight.sizes(), (torch::IntArrayRef{8, 3, 7, 7}));
  EXPECT_EQ(taps.layers()[0].output.size(2), 112);
  EXPECT_EQ(taps.layers()[1].input.size(2), 56);
  EXPECT_EQ(taps.layers().back().input.size(1), 64);
}

TEST(ResNet, HasTheParameterAndBufferNamesOfTorchvision) {
  std::set<std::string> expected = {"conv1.weight", "fc.weight", "fc.bias"};
  const auto add_norm = [&](const std::string& name) {
    for (const char* each :
         {"weight", "bias", "running_mean", "running_var", "num_batches_tracked"}) {
      expected.insert(name + "." + each);
    }
  };
  add_norm("bn1");
  for (const char* stage : {"layer1", "layer2", "layer3", "layer4"}) {
    for (const char* block : {".0", ".1"}) {
      for (const char* index : {"1", "2"}) {
        expected.insert(std::string(stage) + block + ".conv" + index + ".weight");
        add_norm(std::string(stage) + block + ".bn" + index);
      }
    }
    if (stage == std::string("layer1")) continue;
    expected.insert(std::string(stage) + ".0.downsample.0.weight");
    add_norm(std::string(stage) + ".0.downsample.1");
  }
  std::set<std::string> names;
  const auto model = resnet("resnet18", 0.125);
  for (const auto& item : model->named_parameters()) names.insert(item.key());
  for (const auto& item : model->named_buffers()) names.insert(item.key());
  EXPECT_EQ(names, expected);
}

TEST(ResNet, HalvesItsMapsThreeTimesAndDoublesItsChannels) {
  const auto taps = taps_of(*resnet("resnet10", 0.125));
  EXPECT_EQ(taps.layers()[0].output.sizes(), (torch::IntArrayRef{1, 8, 32, 32}));
  EXPECT_EQ(taps.layers()[2].output.sizes(), (torch::IntArrayRef{1, 8, 32, 32}));
  EXPECT_EQ(taps.layers()[4].output.sizes(), (torch::IntArrayRef{1, 16, 16, 16}));
  EXPECT_EQ(taps.layers()[6].output.sizes(), (torch::IntArrayRef{1, 32, 8, 8}));
  EXPECT_EQ(taps.layers()[8].output.sizes(), (torch::IntArrayRef{1, 64, 4, 4}));
  EXPECT_EQ(taps.layers()[9].input.sizes(), (torch::IntArrayRef{1, 64}));
}

TEST(ResNet, CountsMultiplyAddsOfLayersAndShortcuts) {
  // Channels 8, 16, 32, 64 on maps of 32, 16, 8, 4 pixels a side.
  const int64_t stem = 32 * 32 * 9 * 3 * 8;
  const int64_t first = 32 * 32 * 9 * 2 * 8 * 8;
  int64_t others = 0;
  for (int64_t stage = 1; stage < 4; ++stage) {
    const int64_t pixels = (32 >> stage) * (32 >> stage);
    const int64_t inputs = 8 << (stage - 1);
    const int64_t outputs = 8 << stage;
    others += pixels * outputs * (9 * inputs + 9 * outputs + inputs);
  }
  EXPECT_EQ(taps_of(*resnet("resnet10", 0.125)).macs(), stem + first + others + 64 * 10);
}

TEST(ResNet, CostsAQuarterWithAStemOfStrideTwo) {
  const auto full = taps_of(*resnet("resnet10", 0.125, 1));
  const auto halved = taps_of(*resnet("resnet10", 0.125, 2));
  EXPECT_EQ(halved.layers()[0].output.size(2), 16);
  const int64_t classifier = 64 * 10;
  EXPECT_EQ(4 * (halved.macs() - classifier), full.macs() - classifier);
}

TEST(ResNet, StartsWithKaimingNormalConvolutions) {
  torch::manual_seed(0);
  const auto model = resnet("resnet10", 0.5);
  const auto weight = model->named_parameters()["layer3.0.conv2.weight"];
  const double expected = std::sqrt(2.0 / (128 * 9));  // fan out
  EXPECT_NEAR(weight.std().item<double>(), expected, 0.02 * expected);
  EXPECT_NEAR(weight.mean().item<double>(), 0, 0.02 * expected);
}

TEST(ResNet, TapsBlocksAfterTheResidualAdd) {
  torch::NoGradGuard no_grad;
  const auto model = resnet("resnet10", 0.125);
  for (auto& item : model->named_parameters()) {
    if (item.key() == "layer1.0.bn2.weight") item.value().zero_();
  }
  const auto taps = taps_of(*model);
  // A block whose last normalisation is zero is the identity on its non-negative input.
  EXPECT_TRUE(taps.layers()[2].output.equal(taps.layers()[0].output));
}

TEST(ResNet, TakesImagesOfOtherShapes) {
  const auto model =
      resnet("resnet10", 0.125, 1, {.channels = 1, .height = 9, .width = 9, .classes = 4});
  model->eval();
  EXPECT_EQ(model->forward(torch::randn({2, 1, 9, 9})).sizes(), (torch::IntArrayRef{2, 4}));
}

TEST(ResNet, RejectsSettingsOutOfRange) {
  EXPECT_EQ(error_of([] { resnet("resnet10", 0.01); }),
            "model.width: must be in [0.015625, 16], got 0.01");
  EXPECT_EQ(error_of([] { resnet("resnet10", 17); }),
            "model.width: must be in [0.015625, 16], got 17");
  EXPECT_EQ(error_of([] { resnet("resnet18", std::nan("")); }),
            "model.width: must be in [0.015625, 16], got nan");
  EXPECT_EQ(error_of([] { resnet("resnet18", 1, 3); }), "model.stem_stride: must be 1 or 2, got 3");
  EXPECT_EQ(error_of([] { resnet("resnet20", 0.05); }),
            "model.width: must be in [0.0625, 16], got 0.05");
  const auto rejected = [](const Values& values) {
    return error_of([&] {
      Settings settings("model", values);
      models().find("resnet18").build({}, settings);
    });
  };
  EXPECT_EQ(rejected({{"shortcut", "C"}}),
            "model.shortcut: must be A (padded) or B (projected), got 'C'");
  EXPECT_EQ(rejected({{"stem", "big"}}), "model.stem: must be imagenet or cifar, got 'big'");
  EXPECT_EQ(rejected({{"stem", "imagenet"}, {"stem_stride", 2}}),
            "model.stem_stride: is for the cifar stem; the imagenet stem has its own stride");
}

}  // namespace kelvin::resnet_test
