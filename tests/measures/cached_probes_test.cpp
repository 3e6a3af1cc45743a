#include "kelvin/measures/cached_probes.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::cached_probes_test {

Record record_of(const torch::Tensor& labels, const torch::Tensor& output, int64_t classes = 3) {
  Record record;
  record.labels = labels;
  record.classes = classes;
  LayerRecord layer;
  layer.name = "only";
  layer.output = output;
  record.layers = {layer};
  return record;
}

// Features that say something about the class.
Record noisy(int64_t samples, uint64_t seed) {
  const auto labels = torch::arange(samples) % 3;
  return record_of(
      labels, (torch::one_hot(labels, 8) + 0.6 * noise({samples, 8}, seed)).to(torch::kFloat32));
}

ProbeResult result_of(const CachedProbes& probes) {
  const auto results = probes.results();
  EXPECT_EQ(results.size(), 1U);
  return results.at(0);
}

TEST(CachedProbes, HitWhatTheFeaturesTell) {
  CachedProbes probes(ProbeOptions{});
  EXPECT_FALSE(probes.saw_both_splits());
  probes.see_train(noisy(300, 1));
  EXPECT_FALSE(probes.saw_both_splits());
  probes.see_test(noisy(90, 2));
  EXPECT_TRUE(probes.saw_both_splits());
  const auto result = result_of(probes);
  EXPECT_EQ(result.hits.sizes(), std::vector<int64_t>{90});
  const double accuracy = result.hits.to(torch::kFloat64).mean().item<double>();
  EXPECT_GT(accuracy, 0.6);
  EXPECT_LT(accuracy, 1);
}

TEST(CachedProbes, SayWhatWasChosenAndWhetherItConverged) {
  CachedProbes probes(ProbeOptions{});
  probes.see_train(noisy(300, 1));
  probes.see_test(noisy(90, 2));
  const auto definition = result_of(probes).definition;
  EXPECT_EQ(definition["protocol"], "diagnose");
  EXPECT_EQ(definition["converged"], true);
  EXPECT_EQ(definition["train_samples"], 300);
  EXPECT_EQ(definition["samples"], 90);
  EXPECT_EQ(definition["width"], 8);
  const std::vector<double> candidates = definition["l2_candidates"];
  EXPECT_EQ(std::count(candidates.begin(), candidates.end(), definition["l2"].get<double>()), 1);

  CachedProbes hasty({.max_iterations = 1, .tolerance = 1e-12});
  hasty.see_train(noisy(300, 1));
  hasty.see_test(noisy(90, 2));
  EXPECT_EQ(result_of(hasty).definition["converged"], false);
}

TEST(CachedProbes, ChooseTheStrongPenaltyWhereWeakOnesOverfit) {
  // As many features as there are samples to learn from, and one of them tells most of it.
  const auto labels = torch::arange(400) % 2;
  auto features = noise({400, 320}, 3);
  features.select(1, 0) += 2 * labels;
  CachedProbes probes({.l2 = {1, 1e-6}});
  probes.see_train(record_of(labels, features, 2));
  probes.see_test(record_of(labels, features, 2));
  EXPECT_EQ(result_of(probes).definition["l2"], 1);
}

TEST(CachedProbes, ChooseTheWeakPenaltyThoughTheStrongOnesAreEquals) {
  // The strong ones leave nothing but the bias, for the class with more samples.
  const auto labels = (torch::arange(100) % 5 < 2).to(torch::kInt64);
  const auto record = record_of(labels, labels.unsqueeze(1).to(torch::kFloat32), 2);
  const auto chosen = [&](const std::vector<double>& l2) {
    CachedProbes probes({.l2 = l2});
    probes.see_train(record);
    probes.see_test(record);
    return result_of(probes).definition["l2"].get<double>();
  };
  EXPECT_EQ(chosen({1e6, 1e5}), 1e6);
  EXPECT_EQ(chosen({1e6, 1e5, 1e-3}), 1e-3);
}

TEST(CachedProbes, TakeAClassWithoutSamples) {
  CachedProbes probes(ProbeOptions{});
  auto train = noisy(60, 1);
  train.classes = 5;
  auto test = noisy(30, 2);
  test.classes = 5;
  probes.see_train(train);
  probes.see_test(test);
  EXPECT_GT(result_of(probes).hits.to(torch::kFloat64).mean().item<double>(), 0.4);
}

TEST(CachedProbes, TakeASingleClassOfSeveral) {
  CachedProbes probes(ProbeOptions{});
  const auto record = record_of(torch::ones({20}, torch::kInt64), noise({20, 4}, 1));
  probes.see_train(record);
  probes.see_test(record);
  EXPECT_TRUE(result_of(probes).hits.all().item<bool>());
}

TEST(CachedProbes, TakeConstantFeatures) {
  CachedProbes probes(ProbeOptions{});
  const auto labels = torch::cat({labels_of({0, 0}), torch::arange(3)}).repeat({8});
  probes.see_train(record_of(labels, torch::full({40, 4}, 7.)));
  probes.see_test(record_of(labels, torch::full({40, 4}, 7.)));
  EXPECT_TRUE(torch::equal(result_of(probes).hits, labels == 0));
}

TEST(CachedProbes, RejectFewerSamplesThanClasses) {
  CachedProbes probes(ProbeOptions{});
  probes.see_train(noisy(2, 1));
  probes.see_test(noisy(9, 1));
  EXPECT_EQ(error_of([&] { probes.results(); }),
            "linear_probe: needs at least as many training samples as classes, 3, got 2");
}

TEST(CachedProbes, RejectALayerThatIsNotInEveryRecord) {
  CachedProbes probes(ProbeOptions{});
  probes.see_train(noisy(30, 1));
  auto other = noisy(30, 2);
  other.layers[0].name = "other";
  probes.see_test(other);
  EXPECT_EQ(error_of([&] { probes.results(); }),
            "linear_probe: layer 'only' must be in every record of both splits");
}

TEST(CachedProbes, RejectWhatIsNotFinite) {
  CachedProbes probes(ProbeOptions{});
  auto record = noisy(30, 1);
  record.layers[0].output[4][2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(error_of([&] { probes.see_train(record); }),
            "linear_probe: features of layer 'only' must be finite, hold NaN or infinity");
}

TEST(CachedProbes, CountTheFeaturesTheyKeep) {
  const auto example = record_of(labels_of({0}), torch::zeros({1, 4, 6, 6}));
  const auto bytes_of_one = [&](const MeasureContext& known) {
    const auto bytes = [&](int64_t samples) {
      return CachedProbes(ProbeOptions{}).memory(example, samples, known);
    };
    return bytes(1001) - bytes(1000);
  };
  // 4 maps averaged to 2 x 2, kept, and once more while they are solved, by 5 numbers per class.
  EXPECT_EQ(bytes_of_one({}), (2 * 16 + 5 * 3) * 4);
  EXPECT_EQ(bytes_of_one({.most_classes = 100}), (2 * 16 + 5 * 100) * 4);
}

TEST(CachedProbes, DoNotDependOnTheScaleOfTheLayer) {
  const auto hits_at = [](double scale) {
    auto train = noisy(300, 1);
    auto test = noisy(90, 2);
    for (auto* record : {&train, &test}) {
      record->layers[0].output = record->layers[0].output * scale;
    }
    CachedProbes probes(ProbeOptions{});
    probes.see_train(train);
    probes.see_test(test);
    return result_of(probes).hits;
  };
  const auto expected = hits_at(1);
  EXPECT_TRUE(torch::equal(hits_at(std::ldexp(1.0, -40)), expected));
  EXPECT_TRUE(torch::equal(hits_at(std::ldexp(1.0, 40)), expected));
}

TEST(CachedProbes, TakeRoundingForNothing) {
  // Of the last feature the smallest bit changes, with the class.
  const auto with_bits = [](Record record) {
    auto& output = record.layers[0].output;
    output = output.clone();
    output.select(1, 7) = 3e9F + 256 * (record.labels == 1).to(torch::kFloat32);
    return record;
  };
  CachedProbes probes({.keep_weights = true});
  probes.see_train(with_bits(noisy(300, 1)));
  probes.see_test(with_bits(noisy(90, 2)));
  EXPECT_EQ(result_of(probes).weight.select(1, 7).abs().max().item<double>(), 0);
  EXPECT_FALSE(result_of(probes).hits.all().item<bool>());
}

TEST(CachedProbes, SayWhatWasHeldOutOnlyIfThereWasAChoice) {
  for (const bool has_choice : {true, false}) {
    CachedProbes probes(has_choice ? ProbeOptions{} : ProbeOptions{.l2 = {0.1}});
    probes.see_train(noisy(300, 1));
    probes.see_test(noisy(90, 2));
    EXPECT_EQ(result_of(probes).definition.contains("held_out"), has_choice);
  }
}

}  // namespace kelvin::cached_probes_test
