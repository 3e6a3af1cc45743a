#include "kelvin/experiment/evaluate/detect_in_dumps.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <set>

#include "kelvin/experiment/run/run_store.h"
#include "kelvin/formats/npz_file.h"
#include "kelvin/measures/detectors/detector.h"
#include "kelvin/runs/scores_file.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::detect_in_dumps_test {

class DetectInDumps : public testing::Test {
 protected:
  DetectInDumps() {
    write("train", 60, 0, 0);
    write("test", 30, 1, 0);
    write("svhn", 20, 2, 3);
  }

  // Non-negative features of a classifier, far from those of training if `offset` is not 0.
  void write(const std::string& name, int64_t samples, uint64_t seed, double offset,
             const std::set<std::string>& without = {}, double temperature = 1) {
    const auto labels = torch::arange(samples) % 4;
    const auto features = (noise({samples, 6}, seed) +
                           3 * noise({4, 6}, 50).index_select(0, labels) + offset * noise({6}, 51))
                              .abs();
    const auto weight = noise({4, 6}, 52);
    const auto bias = noise({4}, 53);
    Arrays arrays;
    const auto set = [&](const std::string& key, const torch::Tensor& tensor) {
      if (!without.contains(key)) arrays[key] = array_of(tensor);
    };
    set("features", features);
    set("logits", temperature * (features.matmul(weight.t()) + bias));
    set("labels", labels);
    set("weight", weight);
    set("bias", bias);
    if (temperature != 1) set("temperature", torch::tensor(temperature, torch::kFloat64));
    write_npz(path(name), arrays);
  }

  std::string path(const std::string& name) const { return folder_ / (name + ".npz"); }

  DetectRequest request(const std::vector<std::string>& overrides = {}) const {
    DetectRequest request{.id_train = path("train"),
                          .id_test = path("test"),
                          .ood = {{.name = "svhn", .npz = path("svhn")}}};
    for (const auto& each : overrides) request.settings.apply_override(each);
    return request;
  }

  static double auroc(const Readings& readings, const std::string& detector) {
    for (const auto& reading : readings) {
      if (reading.name == "auroc" && reading.detector == detector) return reading.value;
    }
    ADD_FAILURE() << "no AUROC of " << detector;
    return 0;
  }

  // log of the largest probability p, precise where p is rounded to 1; 0 where 1 - p is none.
  torch::Tensor log_confidence(const std::string& name, double temperature) const {
    const auto logits = tensor_of(read_npz(path(name)).at("logits")) / temperature;
    const auto sorted = std::get<0>(logits.sort(1, /*descending=*/true));
    return -(sorted.slice(1, 1) - sorted.slice(1, 0, 1)).exp().sum(1).log1p();
  }

  // The AUROC by its definition.
  static double pairs_in_order(const torch::Tensor& known, const torch::Tensor& ood) {
    const auto differences = known.unsqueeze(1) - ood.unsqueeze(0);
    return (0.5 + 0.5 * differences.sign()).mean().item<double>();
  }

  TemporaryFolder folder_;
};

TEST_F(DetectInDumps, GivesTheNumbersOfEveryDetector) {
  std::set<std::string> found;
  for (const auto& reading : detect_in_dumps(request(), {})) {
    if (reading.name != "auroc") continue;
    found.insert(reading.detector);
    EXPECT_EQ(reading.ood, "svhn");
    EXPECT_EQ(reading.definition.at("train_samples"), 60);
  }
  const auto names = detectors().names();
  EXPECT_EQ(found, std::set<std::string>(names.begin(), names.end()));
}

TEST_F(DetectInDumps, OfLogitsAloneLeavesOutWhatNeedsMore) {
  write("train", 60, 0, 0, {"features", "weight", "bias"});
  write("test", 30, 1, 0, {"features", "labels"});  // OOD labels are of no use either
  write("svhn", 20, 2, 3, {"features", "labels"});
  std::vector<std::string> told;
  RunContext context;
  context.warn = [&](const std::string& sentence) { told.push_back(sentence); };
  const auto readings = detect_in_dumps(request(), context);
  EXPECT_GT(auroc(readings, "msp"), 0);
  EXPECT_NE(std::find(told.begin(), told.end(),
                      "left out neco: needs features, which the records do not have"),
            told.end());
  EXPECT_EQ(error_of([&] { detect_in_dumps(request({"measure.detectors=[\"neco\"]"}), {}); }),
            "neco: needs features, which the records do not have");
}

// At T = 100 the logits are about a hundred times as large; scored at T = 1 many samples would be
// equally sure, and the order of the others another.
TEST_F(DetectInDumps, ScoresAtTheTemperatureOfTraining) {
  const auto only_msp = std::vector<std::string>{"measure.detectors=[\"msp\"]"};
  const auto at_one = auroc(detect_in_dumps(request(only_msp), {}), "msp");
  write("train", 60, 0, 0, {}, 100);
  write("test", 30, 1, 0, {}, 100);
  write("svhn", 20, 2, 3, {}, 100);
  EXPECT_DOUBLE_EQ(auroc(detect_in_dumps(request(only_msp), {}), "msp"), at_one);
  EXPECT_DOUBLE_EQ(at_one,
                   pairs_in_order(log_confidence("test", 100), log_confidence("svhn", 100)));
  const auto wrong =
      detect_in_dumps(request({"measure.detectors=[\"msp\"]", "measure.temperature=1"}), {});
  EXPECT_DOUBLE_EQ(auroc(wrong, "msp"),
                   pairs_in_order(log_confidence("test", 1), log_confidence("svhn", 1)));
  EXPECT_GT(std::abs(auroc(wrong, "msp") - at_one), 0.05);
  EXPECT_EQ(log_confidence("test", 100).eq(0).sum().item<int64_t>(), 0);
  EXPECT_GT(log_confidence("test", 1).eq(0).sum().item<int64_t>(), 10);
  EXPECT_EQ(wrong[0].definition.at("temperature"), 1);
}

TEST_F(DetectInDumps, TakesTheSettingsOfDetectorsAndGroups) {
  auto asked = request({"measure.detectors=[\"neco\"]", "detector.neco.dimensions=2",
                        "measure.near=[\"svhn\", \"other\"]"});
  write("other", 25, 4, 1);
  asked.ood.push_back({.name = "other", .npz = path("other")});
  double mean = 0;
  bool has_near = false;
  for (const auto& reading : detect_in_dumps(asked, {})) {
    if (reading.name != "auroc") continue;
    EXPECT_EQ(reading.definition.at("dimensions"), 2);
    if (reading.ood == "near") {
      has_near = true;
      EXPECT_NEAR(reading.value, mean, 1e-12);
    } else {
      mean += reading.value / 2;
    }
  }
  EXPECT_TRUE(has_near);
}

TEST_F(DetectInDumps, WritesScores) {
  auto asked = request({"measure.detectors=[\"msp\"]"});
  asked.scores = folder_ / "scores";
  detect_in_dumps(asked, {});
  const auto scores = load_scores(asked.scores);
  ASSERT_EQ(scores.size(), 1U);
  EXPECT_EQ(scores[0].id_scores.size(), 30U);
  EXPECT_EQ(scores[0].ood_scores.size(), 20U);
}

TEST_F(DetectInDumps, RefusesDumpsOfDifferentNetworks) {
  write_npz(path("svhn"), {{"logits", array_of(noise({5, 3}, 0))}});
  EXPECT_EQ(
      error_of([&] { detect_in_dumps(request(), {}); }),
      path("svhn") + ": 'logits' must have 4 classes as those of the training samples, got 3");
  write_npz(path("svhn"), {{"logits", array_of(noise({5, 4}, 0))}});
  EXPECT_EQ(error_of([&] { detect_in_dumps(request(), {}); }),
            path("svhn") + ": must have 'features', as the training samples do");
  write_npz(path("svhn"),
            {{"logits", array_of(noise({5, 4}, 0))}, {"features", array_of(noise({5, 7}, 0))}});
  EXPECT_EQ(error_of([&] { detect_in_dumps(request(), {}); }),
            path("svhn") + ": 'features' must be 6 wide as those of the training samples, got 7");
}

TEST_F(DetectInDumps, RefusesDumpsOfAnotherTemperatureOrClassifier) {
  write("svhn", 20, 2, 3, {}, 100);
  EXPECT_EQ(error_of([&] { detect_in_dumps(request(), {}); }),
            path("svhn") + ": 'temperature' must be 1 as in training, got 100");
  write_npz(path("svhn"), {{"logits", array_of(noise({5, 4}, 0))},
                           {"features", array_of(noise({5, 6}, 0))},
                           {"weight", array_of(noise({4, 6}, 0))}});
  EXPECT_EQ(error_of([&] { detect_in_dumps(request(), {}); }),
            path("svhn") + ": 'weight' must be that of the training samples' dump, or left out");
}

TEST_F(DetectInDumps, RefusesNamesThatAreThereTwiceOrMeanAGroup) {
  auto twice = request();
  twice.ood.push_back(twice.ood[0]);
  EXPECT_EQ(error_of([&] { detect_in_dumps(twice, {}); }),
            "--ood: 'svhn' is there twice; give one of them another name, as NAME=x.npz");
  auto group = request();
  group.ood[0].name = "near";
  EXPECT_EQ(error_of([&] { detect_in_dumps(group, {}); }),
            "--ood: 'near' is what the mean over the datasets of --near is called; give the data "
            "another name, as NAME=x.npz");
  EXPECT_EQ(error_of([&] { detect_in_dumps(request({"measure.near=[\"svnh\"]"}), {}); }),
            "measure.near: 'svnh' is none of the OOD datasets");
}

TEST_F(DetectInDumps, RefusesUnknownSettings) {
  EXPECT_EQ(error_of([&] { detect_in_dumps(request({"measure.detector=[\"msp\"]"}), {}); }),
            "measure.detector: no such setting; did you mean 'measure.detectors'?");
  EXPECT_TRUE(error_of([&] {
                detect_in_dumps(request({"detector.neko.dimensions=2"}), {});
              }).find("did you mean") != std::string::npos);
  auto none = request();
  none.ood.clear();
  EXPECT_EQ(error_of([&] { detect_in_dumps(none, {}); }),
            "--ood: needs at least one dump of OOD samples, as NAME=x.npz");
}

TEST_F(DetectInDumps, TellsOfAClassifierThatDoesNotGiveTheLogits) {
  const auto told = [&] {
    std::vector<std::string> sentences;
    RunContext context;
    context.warn = [&](const std::string& sentence) { sentences.push_back(sentence); };
    detect_in_dumps(request({"measure.detectors=[\"msp\"]"}), context);
    return sentences;
  };
  EXPECT_TRUE(told().empty());
  auto arrays = read_npz(path("svhn"));
  arrays["logits"] = array_of(10 * tensor_of(arrays.at("logits")));
  write_npz(path("svhn"), arrays);
  auto sentences = told();
  ASSERT_EQ(sentences.size(), 1U);
  EXPECT_TRUE(sentences[0].starts_with(path("svhn") + ": 'weight' and 'bias' do not give 'logits' "
                                                      "from 'features' (up to "));
  EXPECT_TRUE(
      sentences[0].ends_with("; logits are 10 times what they give: store them before the "
                             "division by a temperature"));
  arrays["logits"] = array_of(noise({20, 4}, 77));
  write_npz(path("svhn"), arrays);
  sentences = told();
  ASSERT_EQ(sentences.size(), 1U);
  EXPECT_TRUE(sentences[0].ends_with("apart): detectors that use them mean nothing"));
}

}  // namespace kelvin::detect_in_dumps_test
