#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <string>
#include <vector>

#include "kelvin/core/seeds.h"
#include "kelvin/data/batches.h"
#include "kelvin/train/train.h"
#include "tests/support/easy_training.h"
#include "tests/support/losses.h"

namespace kelvin::two_views_test {

TEST(Train, ComparesTwoViewsInOneBatch) {
  // Notes what the loss is given.
  std::vector<torch::Tensor> embeddings;
  std::vector<torch::Tensor> targets;
  auto options = few_epochs();
  compare_views(options);
  options.epochs = 1;
  options.loss.function = [&, inner = options.loss.function](const torch::Tensor& logits,
                                                             const torch::Tensor& images,
                                                             const torch::Tensor& temperature) {
    embeddings.push_back(logits.detach());
    targets.push_back(images);
    return inner(logits, images, temperature);
  };
  const auto dataset = dark_and_bright(16);
  const auto model = small_model();
  const auto reference = small_model();
  train(*model, dataset, options, {}, kNever);
  ASSERT_EQ(embeddings.size(), 1U);
  EXPECT_TRUE(targets[0].equal(torch::arange(16).repeat({2})));
  const BatchMaker batches(dataset, {.augmentation = Augmentation::crop_flip,
                                     .seed = derive_seed(options.seed, "augment"),
                                     .views = 2});
  const auto order = epoch_order(derive_seed(options.seed, "order"), 0, 16);
  const auto expected = reference->forward(batches.make(dataset.train, order).images);
  EXPECT_TRUE(torch::allclose(embeddings[0], expected, 1e-5, 1e-6));
}

TEST(Train, CountsImagesAndNotTheirViews) {
  std::vector<std::string> calls;
  Recorder recorder("a", calls);
  auto options = few_epochs();
  compare_views(options);
  options.epochs = 1;
  options.batch_size = 30;
  train(*small_model(), dark_and_bright(50), options, {&recorder}, kNever);
  EXPECT_EQ(recorder.images, 50);
  EXPECT_EQ(recorder.total_steps, 2);
  ASSERT_EQ(recorder.losses.size(), 2U);
  EXPECT_NEAR(recorder.epoch_losses[0], (30 * recorder.losses[0] + 20 * recorder.losses[1]) / 50,
              1e-12);
}

// Of 2B views each has one positive among 2B - 1 candidates.
TEST(Train, TellsEntropyAndAccuracyAsMeansOverViews) {
  class Values : public TrainObserver {
   public:
    void after_step(const TrainState& state) override {
      entropy = state.entropy;
      accuracy = state.accuracy;
    }
    double entropy = 0;
    double accuracy = 0;
  } seen;
  auto options = few_epochs();
  compare_views(options);
  options.epochs = 1;
  options.temperature.first = 1e6;
  train(*small_model(), dark_and_bright(16), options, {&seen}, kNever);
  EXPECT_NEAR(seen.entropy, std::log(31), 1e-4);
  EXPECT_GE(seen.accuracy, 0);
  EXPECT_LE(seen.accuracy, 1);
  EXPECT_DOUBLE_EQ(seen.accuracy * 32, std::round(seen.accuracy * 32));
}

TEST(Train, LearnsToTellViews) {
  std::vector<std::string> calls;
  Recorder recorder("a", calls);
  auto options = few_epochs();
  compare_views(options);
  options.augmentation = Augmentation::flip;
  options.epochs = 20;
  options.temperature.first = 0.2;
  train(*small_model(), dark_and_bright(), options, {&recorder}, kNever);
  EXPECT_LT(recorder.epoch_losses.back(), recorder.epoch_losses.front() - 0.1);
}

}  // namespace kelvin::two_views_test
