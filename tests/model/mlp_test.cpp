#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "kelvin/model/model.h"
#include "tests/support/errors.h"

namespace kelvin::mlp_test {

constexpr ModelShape kShape{.channels = 3, .height = 4, .width = 5, .classes = 7};

std::shared_ptr<Model> mlp(int64_t width, int64_t depth) {
  Settings settings("model", {{"width", width}, {"depth", depth}});
  auto model = models().find("mlp").build(kShape, settings);
  settings.reject_unknown_keys();
  return model;
}

TEST(Mlp, HasAsManyLayersAsItIsDeep) {
  torch::NoGradGuard no_grad;
  for (const int64_t depth : {1, 2, 3, 8}) {
    Taps taps;
    mlp(6, depth)->forward(torch::randn({2, 3, 4, 5}), &taps);
    EXPECT_EQ(taps.layers().size(), static_cast<size_t>(depth));
  }
}

TEST(Mlp, CountsMultiplyAddsAsTheSizesOfItsWeights) {
  torch::NoGradGuard no_grad;
  Taps taps;
  mlp(6, 4)->forward(torch::randn({2, 3, 4, 5}), &taps);
  EXPECT_EQ(taps.macs(), 2 * (60 * 6 + 6 * 6 + 6 * 6 + 6 * 7));
}

TEST(Mlp, HasTheParametersOfItsLayers) {
  EXPECT_EQ(parameter_count(*mlp(6, 4)), (60 + 1) * 6 + 2 * (6 + 1) * 6 + (6 + 1) * 7);
  EXPECT_EQ(parameter_count(*mlp(6, 1)), (60 + 1) * 7);
}

TEST(Mlp, NamesItsParametersByLayer) {
  std::vector<std::string> names;
  const auto model = mlp(6, 2);
  for (const auto& item : model->named_parameters()) names.push_back(item.key());
  EXPECT_EQ(names, (std::vector<std::string>{"layers.0.weight", "layers.0.bias", "layers.1.weight",
                                             "layers.1.bias"}));
}

TEST(Mlp, IsAChainOfLinearLayersWithReluBetween) {
  torch::NoGradGuard no_grad;
  const auto model = mlp(6, 3);
  const auto images = torch::randn({2, 3, 4, 5});
  const auto p = model->parameters();
  auto expected = images.reshape({2, 60});
  expected = torch::relu(expected.matmul(p[0].t()) + p[1]);
  expected = torch::relu(expected.matmul(p[2].t()) + p[3]);
  expected = expected.matmul(p[4].t()) + p[5];
  EXPECT_TRUE(torch::allclose(model->forward(images), expected, 1e-5, 1e-6));
}

TEST(Mlp, TapsHiddenLayersAfterTheirRelu) {
  torch::NoGradGuard no_grad;
  torch::manual_seed(0);
  Taps taps;
  mlp(6, 3)->forward(torch::randn({9, 3, 4, 5}), &taps);
  EXPECT_GE(taps.layers()[0].output.min().item<float>(), 0);
  EXPECT_TRUE(taps.layers()[1].input.equal(taps.layers()[0].output));
  EXPECT_LT(taps.layers()[2].output.min().item<float>(), 0);
}

TEST(Mlp, RejectsAWidthOrDepthBelowOne) {
  EXPECT_EQ(error_of([] { mlp(0, 3); }), "model.width: must be from 1 to 65536, got 0");
  EXPECT_EQ(error_of([] { mlp(4, 0); }), "model.depth: must be from 1 to 1000, got 0");
}

}  // namespace kelvin::mlp_test
