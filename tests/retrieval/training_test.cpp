#include "kelvin/retrieval/training.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::training_test {

const ScoreMap kSoftmax = [](const torch::Tensor& scores) { return torch::softmax(scores, -1); };

TEST(RetrievalTraining, LearnsTheTask) {
  const RetrievalNetwork network({.width = 32}, 0);
  RetrievalTrainer trainer(network, kSoftmax, {.learning_rate = 3e-3}, 1);
  const auto first = trainer.step();
  double last = 0;
  for (int i = 0; i < 100; ++i) last = trainer.step().loss;
  EXPECT_NEAR(first.loss, 2.3, 0.1);
  EXPECT_LT(last, 1.5);
  EXPECT_EQ(trainer.steps(), 101);
}

// LibTorch's AdamW on the same loss.
TEST(RetrievalTraining, StepsAsLibTorchDoes) {
  const RetrievalNetwork ours({.width = 16}, 2);
  const RetrievalNetwork theirs({.width = 16}, 2);
  RetrievalTrainer trainer(ours, kSoftmax, {}, 0);
  std::vector<torch::Tensor> parameters;
  for (const auto& [name, parameter] : theirs.parameters()) parameters.push_back(parameter);
  torch::optim::AdamW optimizer(parameters,
                                torch::optim::AdamWOptions(1e-3).weight_decay(1e-3).eps(1e-8));
  for (uint64_t i = 0; i < 5; ++i) {
    const auto sets = draw_sets({.count = 20}, i);
    optimizer.zero_grad();
    const auto loss =
        torch::nn::functional::cross_entropy(theirs.answer(sets, kSoftmax).logits, sets.labels);
    loss.backward();
    optimizer.step();
    EXPECT_NEAR(trainer.step(sets).loss, loss.item<double>(), 1e-5);
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    expect_close(ours.parameters()[i].second.detach(), parameters[i].detach(), 1e-5);
  }
}

TEST(RetrievalTraining, IsTheSameForTheSameSeed) {
  const auto losses = [] {
    const RetrievalNetwork network({.width = 8}, 5);
    RetrievalTrainer trainer(network, kSoftmax, {.batch_size = 16}, 6);
    return std::pair(trainer.step().loss, trainer.step().loss);
  };
  EXPECT_EQ(losses(), losses());
}

TEST(RetrievalTraining, RejectsWhatCannotBeTrained) {
  const RetrievalNetwork network({.width = 8}, 0);
  const auto error_with = [&](const RetrievalTraining& options) {
    return error_of([&] { RetrievalTrainer(network, kSoftmax, options, 0); });
  };
  EXPECT_EQ(error_with({.batch_size = 0}),
            "retrieval training: the batch size must be at least 1, got 0");
  EXPECT_EQ(error_with({.learning_rate = 0}),
            "retrieval training: the learning rate must be a finite number above 0, got 0");
  EXPECT_EQ(error_with({.weight_decay = -1}),
            "retrieval training: the weight decay must be a finite number, not below 0, got -1");
  EXPECT_EQ(error_with({.classes = 3}),
            "retrieval training: the network has 10 classes, the sets 3");
  RetrievalTrainer trainer(
      network, [](const torch::Tensor& scores) { return scores / 0; }, {}, 0);
  EXPECT_EQ(error_of([&] { trainer.step(); }),
            "retrieval training: the loss is not finite at step 1; a lower learning rate may help");
}

}  // namespace kelvin::training_test
