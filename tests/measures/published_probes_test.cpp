#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <vector>

#include "kelvin/data/batches.h"
#include "kelvin/data/dataset.h"
#include "kelvin/experiment/evaluate/extract.h"
#include "kelvin/measures/probes.h"
#include "kelvin/model/weights.h"
#include "kelvin/numerics/logistic_regression.h"
#include "tests/support/built_model.h"
#include "tests/support/measured.h"
#include "tests/support/oracle.h"
#include "tests/support/real_data.h"
#include "tests/support/tensors.h"

namespace kelvin::published_probes_test {

constexpr int64_t kTrain = 4000;
constexpr int64_t kTest = 2000;

// Probes of the published ResNet-20 on CIFAR-10 and, out of distribution, SVHN.
class PublishedProbesSlow : public RealData {
 protected:
  // All of both populations, each batch's maps averaged to 2 x 2; forwarded once for all tests.
  const std::vector<Record>& records() const {
    static const std::vector<Record> all = [&] {
      const auto model = built_model("resnet20");
      load_weights(data_folder() / "weights" / "cifar10-resnet20.safetensors", *model);
      const auto load = [&](const char* name) {
        return load_dataset(name, {.train_samples = kTrain,
                                   .test_samples = kTest,
                                   .data_folder = data_folder(),
                                   .normalisation = Normalisation::imagenet});
      };
      const auto cifar = load("cifar10");
      std::vector<Record> found;
      for (const auto& dataset : {cifar, load("svhn")}) {
        for (const auto split : {Split::train, Split::test}) {
          const auto size = split == Split::train ? kTrain : kTest;
          extract(*model, dataset, cifar,
                  {.split = split,
                   .is_ood = dataset.name != cifar.name,
                   .with_layers = true,
                   .indices = shuffled_sample(0, size, size)},
                  [&](const Record& record) { found.push_back(pooled(record)); });
        }
      }
      return found;
    }();
    return all;
  }

  // One layer on one split of CIFAR-10.
  std::pair<torch::Tensor, torch::Tensor> layer(Split split, const std::string& name) const {
    std::vector<torch::Tensor> features;
    std::vector<torch::Tensor> labels;
    for (const auto& record : records()) {
      if (record.split != split || record.is_ood()) continue;
      for (const auto& each : record.layers) {
        if (each.name == name) features.push_back(each.output);
      }
      labels.push_back(record.labels);
    }
    return {torch::cat(features), torch::cat(labels)};
  }

 private:
  static Record pooled(const Record& record) {
    auto small = record;
    for (auto& each : small.layers) {
      each = {.name = each.name,
              .weight = {},
              .output = pooled_rows(each, ProbeTap::output, /*pool=*/2)};
    }
    return small;
  }
};

std::vector<double> accuracies_of(const Readings& readings, const std::string& ood) {
  std::vector<double> accuracies;
  for (const auto& reading : readings_of(readings, "probe_accuracy")) {
    if (reading.ood == ood) accuracies.push_back(reading.value);
  }
  return accuracies;
}

TEST_F(PublishedProbesSlow, LayersLearnCifarAndForgetHouseNumbers) {
  const auto readings = measured("linear_probe", records());
  const auto cifar = accuracies_of(readings, "");
  const auto svhn = accuracies_of(readings, "svhn");
  ASSERT_EQ(cifar.size(), 20U);
  ASSERT_EQ(svhn.size(), 20U);
  EXPECT_GT(cifar[19], 0.85);
  EXPECT_GT(cifar[18], 0.85);
  EXPECT_LT(cifar[0], 0.6);
  const auto best = std::max_element(svhn.begin(), svhn.end()) - svhn.begin();
  EXPECT_GT(best, 2);
  EXPECT_LT(best, 17);
  EXPECT_GT(reading_of(readings, "rho").interval->low, 0.05);
  EXPECT_LT(reading_of(readings, "kappa", {{"last_layer", "logits"}}).value, 1);
  for (const auto& reading : readings_of(readings, "probe_accuracy")) {
    const auto& interval = reading.interval;
    // Four deviations of a share of 2000 samples at most.
    EXPECT_LT(interval->high - interval->low, 0.05) << reading.layer;
    EXPECT_GT(interval->high - interval->low, 0.005) << reading.layer;
    EXPECT_EQ(reading.definition["converged"], true) << reading.layer << reading.ood;
  }
}

TEST_F(PublishedProbesSlow, AreTheSameTwice) {
  expect_same(measured("linear_probe", records()), measured("linear_probe", records()));
}

TEST_F(PublishedProbesSlow, AreThoseOfScikitLearn) {
  constexpr double kL2 = 1e-2;
  for (const std::string name : {"layer1.2.conv2", "layer2.1.conv1", "layer3.2.conv2"}) {
    SCOPED_TRACE(name);
    auto [train, labels] = layer(Split::train, name);
    auto [test, test_labels] = layer(Split::test, name);
    const auto mean = train.mean(0);
    const auto deviation = train.std(0, /*unbiased=*/false).clamp_min(1e-8);
    train = (train - mean) / deviation;
    test = (test - mean) / deviation;
    const auto expected = oracle(R"(
from sklearn.linear_model import LogisticRegression
l2 = x["l2"].item()
model = LogisticRegression(C=1 / (l2 * len(x["labels"])), tol=1e-6, max_iter=2000)
model.fit(x["train"], x["labels"])
logs = model.predict_log_proba(x["train"])
loss = -logs[np.arange(len(logs)), x["labels"]].mean()
out["loss"] = loss + 0.5 * l2 * (model.coef_ ** 2).sum()
out["accuracy"] = model.score(x["test"], x["test_labels"])
)",
                                 {{"train", train.to(torch::kFloat64)},
                                  {"labels", labels},
                                  {"test", test.to(torch::kFloat64)},
                                  {"test_labels", test_labels},
                                  {"l2", doubles({kL2})}});
    const auto ours = fit_logistic_regression(
        train, labels, 10, {.l2 = kL2, .max_iterations = 100, .tolerance = 1e-4});
    const auto right = (ours.scores(test).argmax(1) == test_labels).to(torch::kFloat64);
    EXPECT_NEAR(right.mean().item<double>(), expected.at("accuracy").item<double>(), 0.003);
    const auto loss =
        torch::nll_loss(torch::log_softmax(ours.scores(train).to(torch::kFloat64), 1), labels) +
        0.5 * kL2 * ours.weight.to(torch::kFloat64).square().sum();
    EXPECT_NEAR(loss.item<double>(), expected.at("loss").item<double>(), 1e-3);

    // The measure itself, on the same layer alone.
    auto alone = records();
    for (auto& record : alone) {
      std::erase_if(record.layers, [&](const LayerRecord& each) { return each.name != name; });
    }
    std::erase_if(alone, [](const Record& record) { return record.is_ood(); });
    const auto reading =
        reading_of(measured("linear_probe", alone, {{"l2", {kL2}}}), "probe_accuracy");
    EXPECT_NEAR(reading.value, expected.at("accuracy").item<double>(), 0.003);
  }
}

}  // namespace kelvin::published_probes_test
