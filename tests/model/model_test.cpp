#include "kelvin/model/model.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>

#include "kelvin/model/head.h"
#include "kelvin/ops/layer_matrices.h"
#include "kelvin/ops/reference_ops.h"
#include "tests/support/built_model.h"
#include "tests/support/errors.h"

namespace kelvin::model_test {

LayerRecord recorded_layer(const torch::Tensor& weight, const torch::Tensor& pre_activation) {
  return {.name = "layer", .weight = weight, .pre_activation = pre_activation};
}

TEST(Taps, AreEmptyAtFirst) {
  const Taps taps;
  EXPECT_TRUE(taps.layers().empty());
  EXPECT_EQ(taps.macs(), 0);
}

TEST(Taps, CountALinearLayerAsInputsTimesOutputsPerSample) {
  Taps taps;
  taps.record(recorded_layer(torch::zeros({5, 7}), torch::zeros({3, 5})));
  EXPECT_EQ(taps.macs(), 3 * 5 * 7);
}

TEST(Taps, CountAConvolutionOncePerPixel) {
  Taps taps;
  taps.record(recorded_layer(torch::zeros({4, 2, 3, 3}), torch::zeros({2, 4, 6, 5})));
  EXPECT_EQ(taps.macs(), 2 * (6 * 5) * (4 * 2 * 3 * 3));
}

TEST(Taps, AddUpOverLayersInOrder) {
  Taps taps;
  auto first = recorded_layer(torch::zeros({5, 7}), torch::zeros({1, 5}));
  auto second = recorded_layer(torch::zeros({2, 5}), torch::zeros({1, 2}));
  first.name = "first";
  second.name = "second";
  taps.record(first);
  taps.record(second);
  EXPECT_EQ(taps.macs(), 35 + 10);
  ASSERT_EQ(taps.layers().size(), 2U);
  EXPECT_EQ(taps.layers()[0].name, "first");
  EXPECT_EQ(taps.layers()[1].name, "second");
}

TEST(Taps, CountWhatIsNoLayer) {
  Taps taps;
  taps.count_macs(torch::zeros({5, 7}), torch::zeros({2, 5}));
  EXPECT_EQ(taps.macs(), 70);
  EXPECT_TRUE(taps.layers().empty());
}

TEST(Taps, CountAttentionAsItsTwoProducts) {
  Taps taps;
  taps.record({.name = "attention", .logits = torch::zeros({1, 2, 3, 3}), .weights = {}}, 99);
  EXPECT_EQ(taps.macs(), 99);
  EXPECT_TRUE(taps.layers().empty());
  ASSERT_EQ(taps.attention().size(), 1U);
  EXPECT_EQ(taps.attention()[0].name, "attention");
}

TEST(Taps, HoldOnToTheLastLayerOnlyIfThatSuffices) {
  Taps taps({.layers = false, .attention = false});
  taps.record(recorded_layer(torch::zeros({5, 7}), torch::zeros({1, 5})));
  auto second = recorded_layer(torch::zeros({2, 5}), torch::zeros({1, 2}));
  second.name = "second";
  taps.record(second);
  taps.record({.name = "attention", .logits = torch::zeros({1, 2, 3, 3}), .weights = {}}, 1);
  EXPECT_EQ(taps.macs(), 35 + 10 + 1);
  ASSERT_EQ(taps.layers().size(), 1U);
  EXPECT_EQ(taps.layers()[0].name, "second");
  EXPECT_TRUE(taps.attention().empty());
}

class EveryModel : public testing::TestWithParam<std::string> {
 protected:
  EveryModel() {
    torch::manual_seed(0);
    model_ = narrow({.height = 32, .width = 32, .classes = 7});
    images_ = torch::randn({3, 3, 32, 32});
    model_->eval();
  }

  static std::shared_ptr<Model> narrow(const ModelShape& shape) {
    const auto& name = GetParam();
    const bool is_for_cifar =
        name == "resnet20" || name == "resnet32" || name == "resnet44" || name == "resnet56";
    const auto width = name == "mlp" ? Value(9) : Value(is_for_cifar ? 0.5 : 0.125);
    Settings settings("model", {{"width", width}});
    return models().find(name).build(shape, settings);
  }

  std::shared_ptr<Model> model_;
  torch::Tensor images_;
  torch::NoGradGuard no_grad_;
};

TEST_P(EveryModel, GivesTheSameOutputWithTapsAndWithout) {
  torch::NoGradGuard no_grad;  // as where something is measured
  Taps taps;
  const auto with_taps = model_->forward(images_, &taps);
  EXPECT_TRUE(with_taps.equal(model_->forward(images_)));
  EXPECT_EQ(with_taps.sizes(), (torch::IntArrayRef{3, 7}));
}

TEST_P(EveryModel, RecordsTheClassifierLast) {
  Taps taps;
  const auto logits = model_->forward(images_, &taps);
  const auto& last = taps.layers().back();
  EXPECT_TRUE(torch::allclose(last.input.matmul(last.weight.t()) + last.bias, logits, 1e-5, 1e-6));
  EXPECT_TRUE(last.output.equal(logits));
}

TEST_P(EveryModel, NamesEachLayerAfterTheParameterItIs) {
  Taps taps;
  model_->forward(images_, &taps);
  const auto parameters = model_->named_parameters();
  for (const auto& layer : taps.layers()) {
    const auto* weight = parameters.find(layer.name + ".weight");
    ASSERT_NE(weight, nullptr) << layer.name;
    EXPECT_TRUE(weight->is_same(layer.weight)) << layer.name;
  }
}

TEST_P(EveryModel, CountsParametersAsTheSumOfTheirSizes) {
  int64_t expected = 0;
  for (const auto& item : model_->named_parameters()) {
    int64_t size = 1;
    for (const auto extent : item.value().sizes()) size *= extent;
    expected += size;
  }
  EXPECT_EQ(parameter_count(*model_), expected);
}

TEST_P(EveryModel, DrawsItsWeightsFromTheGlobalGenerator) {
  const auto built = [](uint64_t seed) {
    torch::manual_seed(seed);
    return narrow({})->head()->linear()->weight;
  };
  EXPECT_TRUE(built(1).equal(built(1)));
  EXPECT_FALSE(built(1).equal(built(2)));
}

// W * A + bias is what the layer made, for linear maps and unfolded convolutions alike.
TEST_P(EveryModel, RecordsShapesThatMultiply) {
  Taps taps;
  model_->forward(images_, &taps);
  for (const auto& layer : taps.layers()) {
    auto product = weight_matrix(layer.weight)
                       .mm(input_matrix(layer.weight, layer.input,
                                        {.stride = layer.stride, .padding = layer.padding}));
    if (layer.bias.defined()) product = product + layer.bias.unsqueeze(1);
    const auto expected = product_matrix(layer.weight, layer.pre_activation);
    ASSERT_EQ(product.sizes(), expected.sizes()) << layer.name;
    const auto scale = expected.abs().max().item<double>();
    EXPECT_LE((product - expected).abs().max().item<double>(), 1e-5 * scale) << layer.name;
  }
}

TEST_P(EveryModel, CostsAndGivesNothingElseWithoutTaps) {
  model_->train();
  const auto forward = [&](Taps* taps) {
    torch::manual_seed(5);
    return model_->forward(images_, taps);
  };
  Taps taps;
  EXPECT_TRUE(forward(nullptr).allclose(forward(&taps), 1e-5, 1e-6));
  // The same operations on the same bits, in training as well.
  const ReferenceOpsScope path(true);
  EXPECT_TRUE(forward(nullptr).equal(forward(&taps)));
}

TEST_P(EveryModel, KnowsItsHead) {
  Taps taps;
  model_->forward(images_, &taps);
  ASSERT_NE(model_->head(), nullptr);
  EXPECT_TRUE(taps.layers().back().weight.is_same(model_->head()->linear()->weight));
}

// Counted as in Table 1 of Unpacking Softmax.
TEST_P(EveryModel, HasAsManyLayersAsItsNameSays) {
  Taps taps;
  model_->forward(images_, &taps);
  const auto digits = GetParam().find_first_of("0123456789");
  if (digits == std::string::npos) return;  // mlp, vit
  EXPECT_EQ(taps.layers().size(), std::stoul(GetParam().substr(digits)));
}

INSTANTIATE_TEST_SUITE_P(All, EveryModel, testing::ValuesIn(built_models()),
                         [](const auto& info) { return info.param; });

TEST(Models, UnknownNameNamesTheNearest) {
  const auto message = error_of([] { models().find("resnet81"); });
  EXPECT_TRUE(message.starts_with("no model named 'resnet81'; did you mean 'resnet")) << message;
}

}  // namespace kelvin::model_test
