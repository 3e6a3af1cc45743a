#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <string>
#include <vector>

#include "kelvin/data/dataset.h"
#include "kelvin/experiment/evaluate/extract.h"
#include "kelvin/model/weights.h"
#include "tests/support/built_model.h"
#include "tests/support/measured.h"
#include "tests/support/oracle.h"
#include "tests/support/real_data.h"
#include "tests/support/tensors.h"

namespace kelvin::published_ranks_test {

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

// The directions of this network are all large, so that gammas of 0.4 and more are added to see
// them cut.
TEST_F(PublishedRanks, AreThoseOfNumPyInEveryReading) {
  const auto& record = forwarded();
  const auto expected = oracle(R"(
def spectrum(shift_free, bias):
    m = x["logits"].astype(float) - (0 if bias else x["bias"].astype(float))
    return np.linalg.svd(m - m.mean(1, keepdims=True) * shift_free, compute_uv=False)
def ranks(s, gammas):
    return np.array([np.sum(s > g * s[0]) for g in gammas], dtype=float)
for shift_free in (0, 1):
    for bias in (0, 1):
        s = spectrum(shift_free, bias)
        p = s[:len(s) - shift_free] / s.sum()
        q = s / s.sum() + 1e-7
        key = f"{shift_free}{bias}"
        out["ranks" + key] = ranks(s, x["gammas"])
        out["others" + key] = np.array([
            np.exp(-np.sum(p * np.log(p))), np.exp(-np.sum(q * np.log(q))),
            np.sum(s**2) / s[0]**2, np.sum(s**2)**2 / np.sum(s**4)])
out["values"] = spectrum(1, 1)
out["curve"] = ranks(out["values"], np.logspace(-4, -1, 25))
)",
                               {{"logits", record.logits},
                                {"bias", record.bias},
                                {"gammas", doubles({0.9, 0.7, 0.4, 1e-2, 1e-3, 1e-4})}});
  for (const auto& [key, variant] : std::map<std::string, Definition>{{"00", kRawWithoutBias},
                                                                      {"01", kRaw},
                                                                      {"10", kShiftFreeWithoutBias},
                                                                      {"11", kShiftFree}}) {
    Ranks ranks;
    for (const double gamma : {0.9, 0.7, 0.4}) {
      const auto readings = measured("solution_rank", {record}, {{"gamma", gamma}});
      ranks.push_back(rank_reading(readings, variant, gamma).value);
    }
    EXPECT_LT(ranks.front(), ranks.back()) << variant;
    const auto readings = measured("solution_rank", {record});
    for (const double rank : ranks_of(readings, variant)) ranks.push_back(rank);
    expect_close(doubles(ranks), expected.at("ranks" + key), 0);
    std::vector<double> others;
    for (const char* name : {"effective_rank", "rankme", "stable_rank", "participation_ratio"}) {
      others.push_back(reading_of(readings, name, variant).value);
    }
    const auto& wanted = expected.at("others" + key);
    expect_close(doubles(others) / wanted, torch::ones_like(wanted), 1e-6);
  }

  const auto readings = measured("solution_rank", {record});
  std::vector<double> curve;
  for (const auto& reading : readings_of(readings, "solution_rank", {{"curve", true}})) {
    curve.push_back(reading.value);
  }
  expect_close(doubles(curve), expected.at("curve"), 0);
  const auto values = readings_of(readings, "singular_value", kShiftFree);
  ASSERT_EQ(values.size(), 10U);
  for (size_t i = 0; i < 9; ++i) {
    const auto wanted = expected.at("values")[static_cast<int64_t>(i)].item<double>();
    EXPECT_NEAR(values[i].value, wanted, 1e-6 * wanted) << i;
  }
  // The shift that was removed: nothing but rounding.
  EXPECT_NEAR(values[9].value, 0, 1e-6 * values[0].value);
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

}  // namespace kelvin::published_ranks_test
