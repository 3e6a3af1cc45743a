#include "kelvin/model/head.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/support/built_model.h"
#include "tests/support/errors.h"

namespace kelvin::head_test {

const ModelShape kShape{.channels = 1, .height = 3, .width = 3, .classes = 5};

std::shared_ptr<Model> mlp(const Values& values) {
  auto all = values;
  all["width"] = 7;
  all["depth"] = 2;
  return built_model("mlp", all, kShape);
}

torch::Tensor logits_of(Model& model, Taps* taps = nullptr) {
  torch::NoGradGuard no_grad;
  torch::manual_seed(1);
  return model.forward(torch::randn({20, 1, 3, 3}), taps);
}

TEST(Head, HasABiasUnlessItShallNot) {
  EXPECT_TRUE(mlp({})->head()->linear()->bias.defined());
  const auto model = mlp({{"bias", false}});
  for (const auto& item : model->named_parameters()) EXPECT_FALSE(item.key().ends_with("bias"));
}

TEST(Head, NormalisesEachSamplesLogits) {
  const auto logits = logits_of(*mlp({{"norm_after_logits", "layer"}}));
  EXPECT_LT(logits.mean(1).abs().max().item<double>(), 1e-5);
  EXPECT_TRUE(torch::allclose(logits.norm(2, {1}), torch::full({20}, std::sqrt(5.0)), 2e-3));
}

TEST(Head, NormalisesEachClassOverTheBatch) {
  const auto model = mlp({{"norm_after_logits", "batch"}});
  model->train();
  const auto logits = logits_of(*model);
  EXPECT_LT(logits.mean(0).abs().max().item<double>(), 1e-5);
  EXPECT_TRUE(torch::allclose(logits.var(0, false), torch::ones({5}), 1e-2));
}

TEST(Head, NormalisesFeatures) {
  const auto model = mlp({{"norm_before_logits", "layer"}});
  Taps taps;
  const auto logits = logits_of(*model, &taps);
  const auto& classifier = taps.layers().back();
  EXPECT_LT(classifier.input.mean(1).abs().max().item<double>(), 1e-5);
  EXPECT_TRUE(classifier.output.is_same(logits));
  EXPECT_TRUE(classifier.pre_activation.is_same(classifier.output));
}

TEST(Head, RecordsThePreActivationBeforeANormalisation) {
  const auto model = mlp({{"norm_after_logits", "layer"}});
  Taps taps;
  const auto logits = logits_of(*model, &taps);
  const auto& classifier = taps.layers().back();
  EXPECT_TRUE(torch::allclose(classifier.input.matmul(classifier.weight.t()) + classifier.bias,
                              classifier.pre_activation, 1e-5, 1e-6));
  EXPECT_FALSE(torch::allclose(classifier.pre_activation, logits));
}

class ScaledHead : public testing::TestWithParam<std::string> {};

TEST_P(ScaledHead, MultipliesTheLogitsWhateverFollowsThem) {
  const auto model = mlp({{"norm_after_logits", GetParam()}, {"norm_before_logits", GetParam()}});
  const auto before = logits_of(*model);
  model->head()->scale_logits(0.01);
  EXPECT_TRUE(torch::allclose(logits_of(*model), before * 0.01, 1e-4, 1e-8));
}

INSTANTIATE_TEST_SUITE_P(Norms, ScaledHead, testing::Values("none", "batch", "layer"),
                         [](const auto& info) { return info.param; });

TEST(Head, WithABottleneckHasLogitsOfItsRank) {
  for (const int64_t width : {1, 2, 3}) {
    const auto model = mlp({{"bottleneck", width}});
    const auto values = std::get<1>(torch::linalg_svd(logits_of(*model).to(torch::kFloat64)));
    EXPECT_GT(values[width - 1].item<double>(), 1e-4 * values[0].item<double>());
    EXPECT_LT(values[width].item<double>(), 1e-6 * values[0].item<double>());
  }
}

TEST(Head, HasNoBiasAroundABottleneck) {
  const auto model = mlp({{"bottleneck", 2}});
  EXPECT_FALSE(model->head()->linear()->bias.defined());
  EXPECT_FALSE(model->named_parameters().contains("bottleneck.bias"));
  EXPECT_TRUE(model->named_parameters().contains("layers.0.bias"));
  EXPECT_EQ(model->head()->tensors().size(), 2U);
}

TEST(Head, RecordsTheBottleneckAsALayerBeforeTheClassifier) {
  for (const auto* family : {"mlp", "resnet20", "vgg11_bn", "vit_tiny"}) {
    const auto model = built_model(family, {{"bottleneck", 2}}, {.classes = 5});
    model->eval();
    Taps taps;
    const torch::NoGradGuard no_grad;
    model->forward(torch::randn({2, 3, 32, 32}), &taps);
    const auto& layers = taps.layers();
    ASSERT_GE(layers.size(), 2U) << family;
    const auto& bottleneck = layers[layers.size() - 2];
    EXPECT_EQ(bottleneck.name, "bottleneck") << family;
    EXPECT_EQ(bottleneck.output.size(1), 2) << family;
    EXPECT_TRUE(layers.back().input.is_same(bottleneck.output)) << family;
  }
}

TEST(Head, KnowsAllItsTensors) {
  EXPECT_EQ(mlp({})->head()->tensors().size(), 2U);
  EXPECT_EQ(mlp({{"bias", false}, {"norm_after_logits", "batch"}})->head()->tensors().size(),
            1U + 5U);
}

TEST(Head, RejectsABottleneckBelowZero) {
  EXPECT_EQ(error_of([] {
              mlp({{"bottleneck", -1}});
            }),
            "model.bottleneck: must be from 1 to 65536, or 0 for none, got -1");
}

TEST(Head, RejectsOtherNorms) {
  EXPECT_EQ(error_of([] {
              mlp({{"norm_after_logits", "group"}});
            }),
            "model.norm_after_logits: must be none, batch or layer, got 'group'");
  EXPECT_EQ(error_of([] {
              mlp({{"norm_before_logits", ""}});
            }),
            "model.norm_before_logits: must be none, batch or layer, got ''");
}

}  // namespace kelvin::head_test
