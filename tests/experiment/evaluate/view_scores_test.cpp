#include "kelvin/experiment/evaluate/view_scores.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/losses.h"

namespace kelvin::view_scores_test {

class ViewScoresTest : public testing::Test {
 protected:
  ViewScoresTest() {
    torch::manual_seed(3);
    Settings settings("model", {{"width", 0.125}});
    model_ = models().find("resnet10").build({.classes = 6}, settings);
    train_.loss = made_loss("info_nce");
    train_.augmentation = Augmentation::crop_flip;
    train_.batch_size = 10;
  }

  ViewScores scores(const ViewOptions& options) {
    return view_scores(*model_, dataset_.test, dataset_, train_, options);
  }

  Dataset dataset_ = load_dataset("glyphs10", {.train_samples = 20, .test_samples = 40});
  TrainOptions train_;
  std::shared_ptr<Model> model_;
  std::vector<int64_t> all_ = epoch_order(0, 0, 40);
};

TEST_F(ViewScoresTest, OfEqualEmbeddingsAreThoseOfChance) {
  torch::NoGradGuard no_grad;
  for (auto& parameter : model_->parameters()) parameter.zero_();
  model_->parameters().back().fill_(1);  // the bias of all outputs
  for (const int64_t batch : {10, 20, 64}) {
    train_.batch_size = batch;
    const auto candidates = static_cast<double>(2 * std::min<int64_t>(batch, 40) - 1);
    EXPECT_NEAR(scores({.indices = all_}).loss, std::log(candidates), 1e-9);
  }
}

TEST_F(ViewScoresTest, AreMeansOverTheLossesOfBatches) {
  const auto got = scores({.indices = all_, .temperature = 0.5, .seed = 7});
  const BatchMaker batches(dataset_, views_of(train_, 7));
  model_->eval();
  torch::NoGradGuard no_grad;
  double loss = 0;
  double right = 0;
  for (int64_t begin = 0; begin < 40; begin += 10) {
    const auto batch =
        batches.make(dataset_.test, {all_.begin() + begin, all_.begin() + begin + 10});
    const auto targets = torch::arange(10).repeat({2});
    const auto values = train_.loss(model_->forward(batch.images).to(torch::kFloat64), targets,
                                    torch::tensor(0.5, torch::kFloat64));
    loss += values.loss.item<double>() / 4;
    right += (values.predictions == targets).sum().item<double>();
  }
  EXPECT_NEAR(got.loss, loss, 1e-9);
  EXPECT_DOUBLE_EQ(got.accuracy, right / 80);
}

TEST_F(ViewScoresTest, AreTheSameWheneverTheyAreLookedAt) {
  const auto first = scores({.indices = all_, .seed = 1});
  torch::rand({7});
  EXPECT_EQ(scores({.indices = all_, .seed = 1}).loss, first.loss);
  EXPECT_NE(scores({.indices = all_, .seed = 2}).loss, first.loss);
}

TEST_F(ViewScoresTest, LeaveTheModelAsItWas) {
  model_->train();
  std::vector<torch::Tensor> before;
  for (const auto& buffer : model_->buffers()) before.push_back(buffer.clone());
  const auto own = scores({.indices = all_}).loss;
  const auto of_batches = scores({.indices = all_, .batch_statistics = true}).loss;
  EXPECT_NE(own, of_batches);
  EXPECT_TRUE(model_->is_training());
  const auto after = model_->buffers();
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(after[i].equal(before[i]));
}

TEST_F(ViewScoresTest, ShowImagesAsTheyAreToAClassifier) {
  train_.loss = made_loss("cross_entropy");
  EXPECT_EQ(views_of(train_, 1).views, 1);
  EXPECT_EQ(views_of(train_, 1).augmentation, Augmentation::none);
  EXPECT_EQ(error_of([&] { scores({.indices = all_}); }),
            "view_scores: needs a loss that compares views");
}

TEST_F(ViewScoresTest, RejectNoImages) {
  EXPECT_EQ(error_of([&] { scores({}); }), "view_scores: needs at least one image, got none");
}

}  // namespace kelvin::view_scores_test
