#include <gtest/gtest.h>
#include <torch/torch.h>

#include <vector>

#include "kelvin/data/dataset.h"
#include "kelvin/model/weights.h"
#include "kelvin/representations/extract.h"
#include "tests/support/built_model.h"
#include "tests/support/measured.h"
#include "tests/support/real_data.h"
#include "tests/support/tensors.h"

namespace kelvin {
namespace {

torch::Tensor as_bfloat16(const torch::Tensor& values) {
  return values.to(torch::kBFloat16).to(torch::kFloat32);
}

class PublishedRanks : public RealData {
 protected:
  // What the network makes of the 10 000 test images, forwarded once for all tests.
  const Record& forwarded() const {
    static const Record record = [&] {
      const auto model = built_model("resnet20");
      load_weights(data_folder() / "weights" / "cifar10-resnet20.safetensors", *model);
      const auto dataset = load_dataset("cifar10", {.train_samples = 10,
                                                    .data_folder = data_folder(),
                                                    .normalisation = Normalisation::imagenet});
      Record whole;
      std::vector<torch::Tensor> logits;
      std::vector<torch::Tensor> features;
      extract(*model, dataset, dataset, {}, [&](const Record& record) {
        whole = record;
        logits.push_back(record.logits);
        features.push_back(record.features);
      });
      whole.logits = torch::cat(logits);
      whole.features = torch::cat(features);
      return whole;
    }();
    return record;
  }
};

const Definition kShiftFree = {{"shift_free", true}, {"bias", true}};
const Definition kShiftFreeWithoutBias = {{"shift_free", true}, {"bias", false}};
const Definition kRaw = {{"shift_free", false}, {"bias", true}};
const Definition kRawWithoutBias = {{"shift_free", false}, {"bias", false}};

Reading rank_reading(const Readings& readings, Definition variant, double gamma) {
  variant["gamma"] = gamma;
  for (const auto& reading : readings_of(readings, "solution_rank", variant)) {
    if (!reading.index) return reading;
  }
  ADD_FAILURE() << "no solution_rank " << variant;
  return {};
}

// At gamma 1e-2, 1e-3 and 1e-4.
std::vector<double> ranks_of(const Readings& readings, const Definition& variant) {
  std::vector<double> ranks;
  for (const double gamma : {1e-2, 1e-3, 1e-4}) {
    ranks.push_back(rank_reading(readings, variant, gamma).value);
  }
  return ranks;
}

// Of the raw logits, over the first.
torch::Tensor spectrum_of(const torch::Tensor& logits) {
  const auto values = torch::linalg_svdvals(logits.to(torch::kFloat64));
  return values / values[0];
}

using Ranks = std::vector<double>;

TEST_F(PublishedRanks, HasTheFullRankOfItsClassesInFloat32) {
  const auto readings = measured("solution_rank", {forwarded()});
  EXPECT_EQ(rank_reading(readings, kShiftFree, 1e-3).value, 9);
  EXPECT_EQ(rank_reading(readings, kShiftFree, 1e-3).definition["upper_bound"], 9);
  EXPECT_EQ(rank_reading(readings, kShiftFree, 1e-3).definition["samples"], 10'000);
  EXPECT_EQ(ranks_of(readings, kShiftFree), (Ranks{9, 9, 9}));
  EXPECT_EQ(ranks_of(readings, kShiftFreeWithoutBias), (Ranks{9, 9, 9}));
}

// The rows of the classifier sum to nearly, not exactly, zero: the common shift of all logits is a
// tenth direction, small enough for gamma to decide whether it counts.
TEST_F(PublishedRanks, HasATenthDirectionThatOnlyASmallGammaCounts) {
  const auto readings = measured("solution_rank", {forwarded()});
  EXPECT_EQ(ranks_of(readings, kRaw), (Ranks{9, 9, 10}));
  EXPECT_EQ(ranks_of(readings, kRawWithoutBias), (Ranks{9, 9, 10}));
  const auto values = spectrum_of(forwarded().logits);
  EXPECT_NEAR(values[8].item<double>(), 0.322, 0.005);
  EXPECT_NEAR(values[9].item<double>(), 7.2e-4, 0.3e-4);
}

TEST_F(PublishedRanks, OfLogitsInBFloat16RisesUnlessTheShiftIsRemoved) {
  auto record = forwarded();
  record.logits = as_bfloat16(record.logits);
  const auto readings = measured("solution_rank", {record});
  EXPECT_EQ(ranks_of(readings, kRaw), (Ranks{9, 10, 10}));
  EXPECT_EQ(ranks_of(readings, kRawWithoutBias), (Ranks{9, 10, 10}));
  EXPECT_EQ(ranks_of(readings, kShiftFree), (Ranks{9, 9, 9}));
  EXPECT_EQ(ranks_of(readings, kShiftFreeWithoutBias), (Ranks{9, 9, 9}));
  const auto values = spectrum_of(record.logits);
  EXPECT_NEAR(values[8].item<double>(), 0.322, 0.005);
  EXPECT_NEAR(values[9].item<double>(), 1.14e-3, 0.05e-3);
}

TEST_F(PublishedRanks, OfFeaturesInBFloat16StaysAsTheClassifierIs) {
  auto record = forwarded();
  record.logits = as_bfloat16(record.features).matmul(record.weight.t()) + record.bias;
  const auto readings = measured("solution_rank", {record});
  const auto expected = measured("solution_rank", {forwarded()});
  for (const auto& variant : {kShiftFree, kRaw, kShiftFreeWithoutBias, kRawWithoutBias}) {
    EXPECT_EQ(ranks_of(readings, variant), ranks_of(expected, variant)) << variant;
  }
  expect_close(spectrum_of(record.logits), spectrum_of(forwarded().logits), 1e-4);
}

}  // namespace
}  // namespace kelvin
