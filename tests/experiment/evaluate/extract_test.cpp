#include "kelvin/experiment/evaluate/extract.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "kelvin/data/batches.h"
#include "kelvin/ops/reference_ops.h"
#include "tests/support/threads.h"

namespace kelvin::extract_test {

Dataset random_dataset(uint64_t seed, const std::string& name) {
  torch::manual_seed(seed);
  const auto images = [](int64_t samples) {
    return Images{.pixels = torch::randint(256, {samples, 3, 8, 8}, torch::kUInt8),
                  .labels = torch::randint(4, {samples}, torch::kInt64)};
  };
  return {.name = name,
          .classes = 4,
          .train = images(11),
          .test = images(7),
          .mean = {0.3, 0.4, 0.5},
          .std_dev = {0.2, 0.25, 0.3}};
}

class Extract : public testing::Test {
 protected:
  Extract() {
    torch::manual_seed(5);
    Settings settings("model", {{"width", 0.125}});
    model_ = models().find("resnet10").build({.height = 8, .width = 8, .classes = 4}, settings);
  }

  std::vector<Record> records(const Dataset& dataset, const ExtractOptions& options) {
    std::vector<Record> all;
    extract(*model_, dataset, dataset_, options,
            [&](const Record& record) { all.push_back(record); });
    return all;
  }

  torch::Tensor logits(const ExtractOptions& options) {
    std::vector<torch::Tensor> parts;
    for (const auto& record : records(dataset_, options)) parts.push_back(record.logits);
    return torch::cat(parts);
  }

  const std::function<torch::Tensor(const torch::Tensor&, const torch::Tensor&)> loss_ =
      [](const auto& logits, const auto& labels) {
        return torch::nn::functional::cross_entropy(logits / 3, labels);
      };
  Dataset dataset_ = random_dataset(1, "trained");
  std::shared_ptr<Model> model_;
};

TEST_F(Extract, GivesWhatTheModelSaysInEvaluationMode) {
  const auto all = records(dataset_, {});
  ASSERT_EQ(all.size(), 1U);
  const auto& record = all[0];
  const auto batch =
      BatchMaker(dataset_.mean, dataset_.std_dev).make(dataset_.test, {0, 1, 2, 3, 4, 5, 6});
  model_->eval();
  torch::NoGradGuard no_grad;
  EXPECT_TRUE(record.logits.equal(model_->forward(batch.images)));
  EXPECT_TRUE(record.labels.equal(dataset_.test.labels));
  EXPECT_EQ(record.split, Split::test);
  EXPECT_EQ(record.classes, 4);
  EXPECT_FALSE(record.is_ood());
}

TEST_F(Extract, HandsOutTheClassifierAndItsInput) {
  const auto record = records(dataset_, {}).at(0);
  EXPECT_TRUE(torch::allclose(record.features.matmul(record.weight.t()) + record.bias,
                              record.logits, 1e-5, 1e-6));
}

// Every tensor of a record that is there.
std::vector<torch::Tensor> tensors_of(const Record& record) {
  std::vector<torch::Tensor> all = {record.logits, record.labels, record.features,
                                    record.weight, record.bias,   record.indices};
  for (const auto& layer : record.layers) {
    all.insert(all.end(), {layer.weight, layer.bias, layer.input, layer.pre_activation,
                           layer.output, layer.before_add, layer.gradient});
  }
  for (const auto& layer : record.attention) all.insert(all.end(), {layer.logits, layer.weights});
  std::erase_if(all, [](const auto& tensor) { return !tensor.defined(); });
  return all;
}

TEST_F(Extract, GivesNothingThatRequiresGradients) {
  Settings settings("model", {{"width", 0.125}, {"depth", 2}});
  const auto convolutions = model_;
  for (const auto& model :
       {convolutions,
        models().find("vit_tiny").build({.height = 8, .width = 8, .classes = 4}, settings)}) {
    model_ = model;
    auto shown = records(dataset_, {.with_layers = true, .with_attention = true});
    shown.push_back(extract_gradients(*model_, dataset_, {.indices = {0, 1}, .loss = loss_}));
    for (const auto& record : shown) {
      ASSERT_GT(tensors_of(record).size(), 20U);
      for (const auto& tensor : tensors_of(record)) EXPECT_FALSE(tensor.requires_grad());
    }
    EXPECT_TRUE(torch::GradMode::is_enabled());
    for (const auto& parameter : model_->parameters()) EXPECT_TRUE(parameter.requires_grad());
  }
}

// Detectors rank samples: one bit of a logit swaps neighbours.
TEST_F(Extract, GivesTheSameBitsOnAnyNumberOfThreads) {
  for (const std::string name : {"resnet10", "vgg11", "mlp", "vit_tiny"}) {
    const nlohmann::json width = name == "mlp" ? nlohmann::json(200) : nlohmann::json(0.25);
    Settings settings("model", {{"width", width}});
    model_ = models().find(name).build({.height = 32, .width = 32, .classes = 100}, settings);
    dataset_.test.pixels = torch::randint(256, {97, 3, 32, 32}, torch::kUInt8);
    dataset_.test.labels = torch::randint(100, {97}, torch::kInt64);
    std::vector<torch::Tensor> one;
    for (const int threads : {1, 2, 3}) {
      const ThreadCount count(threads);
      const auto all = tensors_of(records(dataset_, {.with_layers = true}).at(0));
      if (threads == 1) one = all;
      ASSERT_EQ(all.size(), one.size());
      for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(all[i].equal(one[i])) << name << " " << i;
    }
  }
}

TEST_F(Extract, LeavesTheModelInTheModeItWasIn) {
  for (const bool is_training : {true, false}) {
    model_->train(is_training);
    bool during = true;
    extract(*model_, dataset_, dataset_, {},
            [&](const Record&) { during = model_->is_training(); });
    EXPECT_FALSE(during);
    EXPECT_EQ(model_->is_training(), is_training);
  }
}

TEST_F(Extract, RestoresTheModeWhenTheConsumerThrows) {
  model_->train();
  EXPECT_THROW(extract(*model_, dataset_, dataset_, {},
                       [](const Record&) { throw std::runtime_error("enough"); }),
               std::runtime_error);
  EXPECT_TRUE(model_->is_training());
}

TEST_F(Extract, ChangesNothingInTheModel) {
  model_->train();
  std::vector<torch::Tensor> before;
  for (const auto& buffer : model_->buffers()) before.push_back(buffer.clone());
  records(dataset_, {.split = Split::train});
  const auto after = model_->buffers();
  for (size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(after[i].equal(before[i]));
}

TEST_F(Extract, ShowsTheSplitAskedFor) {
  const auto record = records(dataset_, {.split = Split::train}).at(0);
  EXPECT_EQ(record.split, Split::train);
  EXPECT_TRUE(record.labels.equal(dataset_.train.labels));
}

TEST_F(Extract, ShowsTheSamplesAtTheIndices) {
  const auto record = records(dataset_, {.split = Split::train, .indices = {9, 2, 4}}).at(0);
  const auto rows = torch::tensor({9, 2, 4});
  EXPECT_TRUE(record.labels.equal(dataset_.train.labels.index_select(0, rows)));
  EXPECT_TRUE(torch::allclose(record.logits, logits({.split = Split::train}).index_select(0, rows),
                              1e-5, 1e-6));
}

TEST_F(Extract, SaysWhichSamplesARecordIsOf) {
  std::vector<int64_t> seen;
  for (const auto& record : records(dataset_, {.batch_size = 2, .indices = {5, 0, 3}})) {
    ASSERT_EQ(record.indices.sizes(), record.labels.sizes());
    for (int64_t i = 0; i < record.indices.size(0); ++i) {
      seen.push_back(record.indices[i].item<int64_t>());
      EXPECT_TRUE(record.labels[i].equal(dataset_.test.labels[seen.back()]));
    }
  }
  EXPECT_EQ(seen, (std::vector<int64_t>{5, 0, 3}));
  EXPECT_TRUE(records(dataset_, {})[0].indices.equal(torch::arange(7)));
}

TEST_F(Extract, SplitsSamplesIntoBatchesInOrder) {
  std::vector<int64_t> sizes;
  std::vector<torch::Tensor> labels;
  for (const auto& record : records(dataset_, {.batch_size = 3})) {
    sizes.push_back(record.logits.size(0));
    labels.push_back(record.labels);
  }
  EXPECT_EQ(sizes, (std::vector<int64_t>{2, 2, 3}));
  EXPECT_TRUE(torch::cat(labels).equal(dataset_.test.labels));
  EXPECT_TRUE(torch::allclose(logits({.batch_size = 3}), logits({}), 1e-5, 1e-6));
}

TEST(EqualBatches, AreAsManyAsNeededAndNearlyEqual) {
  EXPECT_EQ(equal_batches(7, 3), (std::vector<int64_t>{0, 2, 4, 7}));
  EXPECT_EQ(equal_batches(257, 256), (std::vector<int64_t>{0, 128, 257}));
  EXPECT_EQ(equal_batches(256, 256), (std::vector<int64_t>{0, 256}));
  EXPECT_EQ(equal_batches(1, 256), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(equal_batches(0, 256), std::vector<int64_t>{0});
}

TEST_F(Extract, UsesTheStatisticsOfEachBatchIfAskedFor) {
  // As training does, but nothing is remembered.
  const auto seen = logits({.batch_statistics = true});
  EXPECT_FALSE(seen.allclose(logits({})));
  torch::NoGradGuard no_grad;
  const auto batch = BatchMaker(dataset_).make(dataset_.test, {0, 1, 2, 3, 4, 5, 6});
  model_->train();
  EXPECT_TRUE(torch::allclose(model_->forward(batch.images), seen, 1e-5, 1e-6));
}

TEST_F(Extract, TakesSmallerBatchesOfLargerImages) {
  dataset_.upsample_to = 64;
  for (const auto& record : records(dataset_, {.batch_size = 4})) {
    EXPECT_LE(record.logits.size(0), 4);
  }
  std::vector<int64_t> sizes;
  for (const auto& record : records(dataset_, {.split = Split::train, .batch_size = 64})) {
    sizes.push_back(record.logits.size(0));
  }
  EXPECT_LE(*std::max_element(sizes.begin(), sizes.end()), 16);
}

TEST_F(Extract, NormalisesOodImagesWithTheTrainedDatasetsStatistics) {
  auto ood = random_dataset(2, "OOD");
  ood.mean = {0.9, 0.9, 0.9};
  ood.std_dev = {0.01, 0.01, 0.01};
  const auto record = records(ood, {.is_ood = true}).at(0);
  EXPECT_EQ(record.ood, "OOD");
  EXPECT_TRUE(record.is_ood());
  const auto batch =
      BatchMaker(dataset_.mean, dataset_.std_dev).make(ood.test, {0, 1, 2, 3, 4, 5, 6});
  model_->eval();
  torch::NoGradGuard no_grad;
  EXPECT_TRUE(record.logits.equal(model_->forward(batch.images)));
}

TEST_F(Extract, ShowsAllLayersOnlyIfAskedTo) {
  EXPECT_TRUE(records(dataset_, {}).at(0).layers.empty());
  const auto record = records(dataset_, {.with_layers = true}).at(0);
  ASSERT_EQ(record.layers.size(), 10U);
  EXPECT_EQ(record.layers.front().name, "conv1");
  EXPECT_EQ(record.layers[1].name, "layer1.0.conv1");
  EXPECT_EQ(record.layers.back().name, "fc");
  EXPECT_TRUE(record.layers.back().output.equal(record.logits));
  EXPECT_TRUE(record.layers.back().input.equal(record.features));
  EXPECT_FALSE(record.layers.front().bias.defined());
}

TEST(Split, HasAName) {
  EXPECT_STREQ(name_of(Split::train), "train");
  EXPECT_STREQ(name_of(Split::test), "test");
}

TEST_F(Extract, RecordsAttentionIfAskedTo) {
  Settings settings("model", {{"width", 0.125}, {"depth", 2}});
  model_ = models().find("vit_tiny").build({.height = 8, .width = 8, .classes = 4}, settings);
  EXPECT_TRUE(records(dataset_, {})[0].attention.empty());
  const auto record = records(dataset_, {.with_attention = true})[0];
  ASSERT_EQ(record.attention.size(), 2U);
  const auto& last = record.attention[1];
  EXPECT_EQ(last.name, "blocks.1.attn");
  EXPECT_EQ(last.head_width, 8);
  EXPECT_EQ(last.logits.sizes(), (torch::IntArrayRef{7, 3, 5, 5}));
  EXPECT_TRUE(last.weights.equal(torch::softmax(last.logits, -1)));
  EXPECT_TRUE(record.layers.empty());
}

TEST_F(Extract, GivesTheGradientsOfTheLossInEveryWeight) {
  const std::vector<int64_t> indices = {4, 0, 9};
  const auto record = extract_gradients(*model_, dataset_, {.indices = indices, .loss = loss_});
  EXPECT_EQ(record.split, Split::train);
  const auto batch = BatchMaker(dataset_.mean, dataset_.std_dev).make(dataset_.train, indices);
  EXPECT_TRUE(record.labels.equal(batch.labels));
  model_->eval();
  model_->zero_grad();
  torch::nn::functional::cross_entropy(model_->forward(batch.images) / 3, batch.labels).backward();
  const auto parameters = model_->named_parameters();
  ASSERT_FALSE(record.layers.empty());
  for (const auto& layer : record.layers) {
    ASSERT_TRUE(layer.gradient.defined()) << layer.name;
    const auto* parameter = parameters.find(layer.name + ".weight");
    ASSERT_NE(parameter, nullptr) << layer.name;
    EXPECT_TRUE(torch::allclose(layer.gradient, parameter->grad(), 1e-4, 1e-6)) << layer.name;
  }
}

TEST_F(Extract, GivesTheGradientsOfALossOfTwoViews) {
  const std::vector<int64_t> indices = {4, 0, 9};
  const BatchOptions views = {.augmentation = Augmentation::crop_flip, .seed = 6, .views = 2};
  const auto distance = [](const torch::Tensor& logits, const torch::Tensor& labels) {
    EXPECT_EQ(labels.size(0), 6);
    return (logits.narrow(0, 0, 3) - logits.narrow(0, 3, 3)).square().sum();
  };
  const auto record =
      extract_gradients(*model_, dataset_, {.indices = indices, .loss = distance, .views = views});
  const auto batch = BatchMaker(dataset_, views).make(dataset_.train, indices);
  EXPECT_TRUE(record.labels.equal(batch.labels));
  EXPECT_EQ(record.layers.front().input.size(0), 6);
  const ReferenceOpsScope path(true);  // a distance of two views is mostly rounded away by others
  model_->eval();
  model_->zero_grad();
  distance(model_->forward(batch.images), batch.labels).backward();
  const auto& last = record.layers.back();
  EXPECT_GT(last.gradient.abs().max().item<double>(), 0);
  EXPECT_TRUE(torch::allclose(
      last.gradient, model_->named_parameters()[last.name + ".weight"].grad(), 1e-4, 1e-6));
}

TEST_F(Extract, OfGradientsLeavesNoneInTheModelAndItsModeAsItWas) {
  model_->train();
  extract_gradients(*model_, dataset_, {.indices = {1, 2}, .loss = loss_});
  // One image has no statistics.
  extract_gradients(*model_, dataset_, {.indices = {1}, .loss = loss_, .batch_statistics = true});
  EXPECT_TRUE(model_->is_training());
  for (const auto& parameter : model_->parameters()) EXPECT_FALSE(parameter.grad().defined());
}

}  // namespace kelvin::extract_test
