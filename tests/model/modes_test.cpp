#include "kelvin/model/modes.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/support/built_model.h"

namespace kelvin::modes_test {

std::vector<bool> modes_of(Model& model) {
  std::vector<bool> modes;
  for (const auto& module : model.modules()) modes.push_back(module->is_training());
  return modes;
}

TEST(EvaluationMode, LeavesEveryModuleInTheModeItWasIn) {
  const auto model = built_model("resnet10", {{"width", 0.125}});
  model->train();
  model->modules()[3]->eval();
  const auto before = modes_of(*model);
  {
    const EvaluationMode evaluation(*model);
    for (const bool is_training : modes_of(*model)) EXPECT_FALSE(is_training);
  }
  EXPECT_EQ(modes_of(*model), before);
}

TEST(BatchStatisticsMode, NormalisesAsTrainingDoes) {
  torch::NoGradGuard no_grad;
  const auto model = built_model("resnet10", {{"width", 0.125}});
  const auto images = torch::randn({8, 3, 16, 16});
  torch::Tensor seen;
  {
    const BatchStatisticsMode mode(*model);
    seen = model->forward(images);
  }
  EXPECT_FALSE(seen.allclose(model->forward(images)));
  model->train();
  EXPECT_TRUE(seen.equal(model->forward(images)));
}

TEST(BatchStatisticsMode, RemembersNothing) {
  torch::NoGradGuard no_grad;
  const auto model = built_model("vgg11_bn", {{"width", 0.125}, {"norm_after_logits", "batch"}});
  std::vector<torch::Tensor> before;
  for (const auto& buffer : model->buffers()) before.push_back(buffer.clone());
  {
    const BatchStatisticsMode mode(*model);
    model->forward(torch::randn({8, 3, 32, 32}));
  }
  const auto after = model->buffers();
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(after[i].equal(before[i]));
}

TEST(MeasuringMode, IsTheOneThatIsAskedFor) {
  torch::NoGradGuard no_grad;
  const auto model = built_model("resnet10", {{"width", 0.125}});
  const auto images = torch::randn({8, 3, 16, 16});
  const auto seen = [&](bool uses_batch_statistics) {
    const MeasuringMode mode(*model, uses_batch_statistics);
    return model->forward(images);
  };
  EXPECT_FALSE(seen(true).allclose(seen(false)));
  const BatchStatisticsMode mode(*model);
  EXPECT_TRUE(model->forward(images).equal(seen(true)));
}

TEST(BatchNormalisation, IsFoundInNetworksThatHaveIt) {
  EXPECT_TRUE(has_batch_normalisation(*built_model("resnet10", {{"width", 0.125}})));
  EXPECT_TRUE(has_batch_normalisation(
      *built_model("mlp", {{"width", 4}, {"norm_before_logits", "batch"}})));
  EXPECT_FALSE(has_batch_normalisation(
      *built_model("mlp", {{"width", 4}, {"norm_before_logits", "layer"}})));
}

TEST(BatchStatisticsMode, DropsNoUnits) {
  torch::NoGradGuard no_grad;
  const auto model = built_model("vgg11", {{"width", 0.0625}});
  const auto images = torch::randn({8, 3, 32, 32});
  const BatchStatisticsMode mode(*model);
  EXPECT_TRUE(model->forward(images).equal(model->forward(images)));
}

}  // namespace kelvin::modes_test
