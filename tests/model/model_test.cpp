#include "kelvin/model/model.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>

#include "tests/support/errors.h"

namespace kelvin {
namespace {

Tap tap_of(const torch::Tensor& weight, const torch::Tensor& product) {
  return {.name = "layer", .weight = weight, .product = product};
}

TEST(Taps, AreEmptyAtFirst) {
  const Taps taps;
  EXPECT_TRUE(taps.layers().empty());
  EXPECT_EQ(taps.macs(), 0);
}

TEST(Taps, CountALinearLayerAsInputsTimesOutputsPerSample) {
  Taps taps;
  taps.record(tap_of(torch::zeros({5, 7}), torch::zeros({3, 5})));
  EXPECT_EQ(taps.macs(), 3 * 5 * 7);
}

TEST(Taps, CountAConvolutionOncePerPixel) {
  Taps taps;
  taps.record(tap_of(torch::zeros({4, 2, 3, 3}), torch::zeros({2, 4, 6, 5})));
  EXPECT_EQ(taps.macs(), 2 * (6 * 5) * (4 * 2 * 3 * 3));
}

TEST(Taps, AddUpOverLayersInOrder) {
  Taps taps;
  auto first = tap_of(torch::zeros({5, 7}), torch::zeros({1, 5}));
  auto second = tap_of(torch::zeros({2, 5}), torch::zeros({1, 2}));
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
  taps.record({.name = "attention", .logits = torch::zeros({1, 2, 3, 3}), .shares = {}}, 99);
  EXPECT_EQ(taps.macs(), 99);
  EXPECT_TRUE(taps.layers().empty());
  ASSERT_EQ(taps.attention().size(), 1U);
  EXPECT_EQ(taps.attention()[0].name, "attention");
}

class EveryModel : public testing::TestWithParam<std::string> {
 protected:
  EveryModel() {
    Settings settings("model", {{"width", GetParam() == "mlp" ? Value(9) : Value(0.125)}});
    torch::manual_seed(0);
    model_ = models().find(GetParam()).build({.height = 16, .width = 16, .classes = 7}, settings);
    images_ = torch::randn({3, 3, 16, 16});
    model_->eval();
  }

  std::shared_ptr<Model> model_;
  torch::Tensor images_;
  torch::NoGradGuard no_grad_;
};

TEST_P(EveryModel, GivesTheSameOutputWithTapsAndWithout) {
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
    Settings settings("model", {{"width", GetParam() == "mlp" ? Value(4) : Value(0.125)}});
    torch::manual_seed(seed);
    return models().find(GetParam()).build({}, settings)->parameters().front();
  };
  EXPECT_TRUE(built(1).equal(built(1)));
  EXPECT_FALSE(built(1).equal(built(2)));
}

INSTANTIATE_TEST_SUITE_P(All, EveryModel,
                         testing::Values("mlp", "resnet10", "resnet18", "vit_tiny"),
                         [](const auto& info) { return info.param; });

TEST(Models, UnknownNameNamesTheNearest) {
  const auto message = error_of([] { models().find("resnet81"); });
  EXPECT_TRUE(message.starts_with("no model named 'resnet81'; did you mean 'resnet1")) << message;
}

}  // namespace
}  // namespace kelvin
