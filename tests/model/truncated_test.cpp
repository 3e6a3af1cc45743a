#include "kelvin/model/truncated.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "kelvin/model/description.h"
#include "kelvin/model/layers.h"
#include "kelvin/model/weights.h"
#include "kelvin/ops/layer_matrices.h"
#include "tests/support/built_model.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::truncated_test {

class TruncatedAnywhere : public testing::TestWithParam<std::string> {};

// Whatever the family, and wherever it is cut: what it hands on is what the whole network has
// there.
TEST_P(TruncatedAnywhere, HandsOnWhatTheWholeNetworkHasThere) {
  torch::NoGradGuard no_grad;
  const bool is_mlp = GetParam() == "mlp";
  const Values narrow = {{"width", is_mlp ? Value(24) : Value(0.25)}};
  const auto whole = built_model(GetParam(), narrow);
  const auto images = noise({3, 3, 32, 32}, 1).to(torch::kFloat32);
  Taps taps;
  whole->forward(images, &taps);
  std::vector<int64_t> parameters;
  int64_t last_macs = 0;
  for (const auto& layer : taps.layers()) {
    Truncated cut(built_model(GetParam(), narrow), {.layer = layer.name}, {});
    cut.eval();
    Taps own;
    const auto logits = cut.forward(images, &own);
    const auto features = pooled_features(layer.output, 2);
    ASSERT_EQ(own.layers().back().name, "probe");
    expect_close(own.layers().back().input, features, 0);
    EXPECT_TRUE(cut.forward(images).equal(logits));
    EXPECT_GT(own.macs(), last_macs) << layer.name;
    last_macs = own.macs() - own.layers().back().weight.numel() * images.size(0);
    parameters.push_back(parameter_count(cut));
  }
  EXPECT_LT(parameters.front(), parameter_count(*whole));
}

INSTANTIATE_TEST_SUITE_P(Families, TruncatedAnywhere,
                         testing::Values("mlp", "vgg11", "resnet18", "resnet20", "resnet50",
                                         "vit_tiny"),
                         [](const auto& info) { return info.param; });

TEST(Truncated, HasOnlyTheParametersThatItNeedsUnderTheirOldNames) {
  const auto cut = built_model("truncated", {{"of", "resnet20"}, {"layer", "layer1.1.conv1"}});
  std::vector<std::string> names;
  for (const auto& [name, tensor] : weights_of(*cut)) {
    if (name.ends_with("weight")) names.push_back(name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"bn1.weight", "conv1.weight", "layer1.0.bn1.weight",
                                             "layer1.0.bn2.weight", "layer1.0.conv1.weight",
                                             "layer1.0.conv2.weight", "layer1.1.bn1.weight",
                                             "layer1.1.conv1.weight", "probe.weight"}));
  EXPECT_EQ(parameter_count(*cut), 3 * 16 * 9 + 3 * 16 * 16 * 9 + 4 * 32 + 10 * 64 + 10);
}

// A scale before the first layer and one behind it, both the model's own.
class TwiceScaled : public Model {
 public:
  TwiceScaled() {
    early_ = register_parameter("early", torch::ones({1}));
    late_ = register_parameter("late", torch::ones({1}));
    linear_ = register_module("linear", torch::nn::Linear(4, 3));
    head_ = Head(3, 2, {});
    head_.register_in(*this, *this, "head");
  }

  torch::Tensor forward(const torch::Tensor& images, Taps* taps) override {
    const auto input = early_ * images.flatten(1);
    const auto product = linear_(input);
    if (taps) taps->record(layer_record("linear", linear_, input, product, product));
    return head_.forward(late_ * product, "head", taps);
  }
  Head* head() override { return &head_; }

 private:
  torch::Tensor early_;
  torch::Tensor late_;
  torch::nn::Linear linear_ = nullptr;
  Head head_;
};

std::vector<std::string> parameter_names(const Model& model) {
  std::vector<std::string> names;
  for (const auto& each : model.named_parameters()) names.push_back(each.key());
  return names;
}

TEST(Truncated, HasOfTheModelsOwnParametersThoseThatItNeeds) {
  const ModelShape shape{.channels = 1, .height = 2, .width = 2, .classes = 2};
  const Truncated cut(std::make_shared<TwiceScaled>(), {.layer = "linear"}, shape);
  EXPECT_EQ(parameter_names(cut), (std::vector<std::string>{"early", "linear.weight", "linear.bias",
                                                            "probe.weight", "probe.bias"}));
  EXPECT_EQ(parameter_count(cut), 1 + 4 * 3 + 3 + 3 * 2 + 2);
}

// The tokens that a vision transformer's first layer hands on have their positions.
TEST(Truncated, HasTheTokensOfAVisionTransformerFromItsFirstLayerOn) {
  const auto cut =
      built_model("truncated", {{"of", "vit_tiny"}, {"layer", "patch_embed.proj"}, {"width", 0.5}});
  EXPECT_EQ(parameter_names(*cut),
            (std::vector<std::string>{"cls_token", "pos_embed", "patch_embed.proj.weight",
                                      "patch_embed.proj.bias", "probe.weight", "probe.bias"}));
}

// Buffers of normalisation and a transformer's own parameters included.
TEST(Truncated, IsTheSameWhenItsWeightsAreLoadedAgain) {
  torch::NoGradGuard no_grad;
  const std::vector<Values> cases = {
      {{"of", "resnet10"}, {"layer", "layer2.0.conv1"}, {"width", 0.125}},
      {{"of", "vit_tiny"}, {"layer", "blocks.0.mlp.fc2"}, {"width", 0.5}, {"depth", 2}}};
  const auto images = noise({3, 3, 32, 32}, 1).to(torch::kFloat32);
  for (const auto& settings : cases) {
    SCOPED_TRACE(settings.at("of").dump());
    const auto cut = built_model("truncated", settings, {}, 1);
    const auto fresh = cut->forward(images);
    cut->train();
    cut->forward(2 * images + 1);  // what normalisation keeps is no longer what it starts from
    for (auto& parameter : cut->parameters()) parameter.add_(0.01);
    cut->eval();
    const TemporaryFolder folder;
    save_weights(folder / "cut.safetensors", *cut);
    const auto again = built_model("truncated", settings, {}, 2);
    load_weights(folder / "cut.safetensors", *again);
    EXPECT_TRUE(again->forward(images).equal(cut->forward(images)));
    EXPECT_FALSE(again->forward(images).equal(fresh));
  }
}

TEST(Truncated, SaysWhatItCosts) {
  const auto whole = built_model("resnet20");
  const auto cut = built_model("truncated", {{"of", "resnet20"}, {"layer", "layer1.1.conv2"}});
  const auto half = describe(*cut, {});
  EXPECT_EQ(half.layers.size(), 6U);
  EXPECT_EQ(half.macs, 1024 * (3 * 16 * 9 + 4 * 16 * 16 * 9) + 640);
  EXPECT_LT(half.macs, describe(*whole, {}).macs);
}

TEST(Truncated, TakesTheProbe) {
  torch::NoGradGuard no_grad;
  Truncated cut(built_model("mlp", {{"width", 8}, {"depth", 3}}), {.layer = "layers.0"}, {});
  const auto weight = noise({10, 8}, 1).to(torch::kFloat32);
  const auto bias = noise({10}, 2).to(torch::kFloat32);
  cut.set_probe(weight, bias);
  Taps taps;
  const auto logits = cut.forward(noise({2, 3, 32, 32}, 3).to(torch::kFloat32), &taps);
  expect_close(logits, torch::addmm(bias, taps.layers()[0].output, weight.t()), 1e-6);
  EXPECT_EQ(error_of([&] { cut.set_probe(weight.t(), bias); }),
            "Truncated: the probe must be [10, 8] and [10], got [8, 10] and [10]");
}

TEST(Truncated, RejectsALayerThatIsNotThere) {
  const auto message = error_of([] { built_model("truncated", {{"layer", "layer9"}}); });
  EXPECT_TRUE(message.starts_with(
      "model.layer: there is no layer 'layer9'; there are: conv1, layer1.0.conv1, "))
      << message;
  EXPECT_EQ(error_of([] {
              built_model("truncated", {{"of", "truncated"}});
            }),
            "model.of: must be another model than truncated");
}

}  // namespace kelvin::truncated_test
