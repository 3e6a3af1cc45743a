#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "kelvin/data/dataset.h"
#include "kelvin/model/precision.h"
#include "kelvin/train/train.h"

namespace kelvin::training_paths_test {

// Networks small enough for many steps, wide enough for the kernels that training is fast by.
struct Network {
  std::string name;
  Values values;
  double rate;
  double falls_to;  // at least this share of its first loss
};

const std::vector<Network> kNetworks = {
    {"mlp", {{"width", 512}, {"depth", 3}}, 1e-2, 0.9},
    {"resnet20", {}, 2e-3, 0.9},
    {"vgg11_bn", {{"width", 0.25}, {"dropout", 0.0}}, 6e-3, 0.95},
    {"vit_tiny", {{"patch", 8}, {"depth", 3}}, 1e-2, 0.9},
};

Dataset few_images() {
  torch::manual_seed(5);
  Dataset dataset{.name = "few_images", .classes = 10, .train = {}, .test = {}};
  dataset.train = {.pixels = torch::randint(256, {16, 3, 32, 32}, torch::kUInt8),
                   .labels = torch::arange(16) % 10};
  dataset.test = dataset.train;
  return dataset;
}

class LossOfEachStep : public TrainObserver {
 public:
  void after_step(const TrainState& state) override { losses_.push_back(state.loss); }
  torch::Tensor losses() const { return torch::tensor(losses_, torch::kFloat64); }

 private:
  std::vector<double> losses_;
};

// Of 200 steps of the training loop.
torch::Tensor losses_of(const Network& network, bool is_reference, Precision precision) {
  torch::manual_seed(3);
  Settings settings("model", network.values);
  const auto model = models().find(network.name).build({.classes = 10}, settings);
  LossOfEachStep observer;
  const TrainOptions options{.epochs = 100,
                             .batch_size = 8,
                             .learning_rate = network.rate,
                             .schedule = Schedule::constant,
                             .warmup_epochs = 0,
                             .optimizer = {.nesterov = true, .weight_decay = 5e-4},
                             .precision = precision,
                             .uses_reference_ops = is_reference};
  train(*model, few_images(), options, {&observer}, [] { return false; });
  return observer.losses();
}

double largest(const torch::Tensor& differences) { return differences.abs().max().item<double>(); }

double mean_of_last(const torch::Tensor& losses) {
  return losses.slice(0, -16).mean().item<double>();
}

TEST(TrainingPathsSlow, HaveTheSameLossesOverTwoHundredSteps) {
  for (const auto& network : kNetworks) {
    const auto reference = losses_of(network, true, Precision::fp32);
    const auto fast = losses_of(network, false, Precision::fp32);
    ASSERT_EQ(reference.size(0), 200);
    RecordProperty(network.name, std::to_string(largest(fast - reference)));
    EXPECT_LT(largest(fast - reference), 0.01) << network.name;
    EXPECT_LT(mean_of_last(reference), network.falls_to * reference[0].item<double>())
        << network.name;
  }
}

// Rounding to bfloat16 is a disturbance of some per cent at every step, on either path.
TEST(TrainingPathsSlow, HaveTheSameLossesInBfloat16ButForItsRounding) {
  if (!multiplies_bfloat16(torch::kCPU)) GTEST_SKIP() << "no products of bfloat16";
  for (const auto& network : kNetworks) {
    const auto exact = losses_of(network, true, Precision::fp32);
    const auto reference = losses_of(network, true, Precision::bf16);
    const auto fast = losses_of(network, false, Precision::bf16);
    const auto reference_error = largest(reference - exact);
    const auto fast_error = largest(fast - exact);
    RecordProperty(network.name,
                   std::to_string(reference_error) + " " + std::to_string(fast_error));
    EXPECT_LT(fast_error, 2 * reference_error + 0.01) << network.name;
    EXPECT_LT(fast_error, 0.2) << network.name;
    EXPECT_LT(mean_of_last(fast), network.falls_to * fast[0].item<double>()) << network.name;
  }
}

}  // namespace kelvin::training_paths_test
