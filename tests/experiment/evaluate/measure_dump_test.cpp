#include "kelvin/experiment/evaluate/measure_dump.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <set>
#include <string>

#include "kelvin/experiment/run/run_store.h"
#include "kelvin/formats/npz_file.h"
#include "kelvin/measures/measure.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/python.h"
#include "tests/support/requests.h"
#include "tests/support/tensors.h"

namespace kelvin::measure_dump_test {

double value_of(const Readings& readings, const std::string& name) {
  for (const auto& reading : readings) {
    if (reading.name == name) return reading.value;
  }
  ADD_FAILURE() << "no reading " << name;
  return 0;
}

class MeasureDump : public testing::Test {
 protected:
  MeasureDump() {
    set("logits",
        torch::tensor({{2.0, 0.0, 0.0}, {0.0, 4.0, 0.0}, {0.0, 0.0, 4.0}}, torch::kFloat64));
    set("labels", torch::tensor({0, 1, 0}));
  }

  void set(const std::string& name, const torch::Tensor& tensor) {
    arrays_[name] = array_of(tensor);
  }

  Readings measured(const std::vector<std::string>& names = {}) const {
    write_npz(path(), arrays_);
    return measure_dump(path(), request_for(names), {});
  }

  // The message without the path it must open with.
  std::string rejected(const std::vector<std::string>& names = {}) const {
    auto message = error_of([&] { measured(names); });
    EXPECT_TRUE(message.starts_with(path() + ": ")) << message;
    return message.substr(std::min(message.size(), path().size() + 2));
  }

  std::string path() const { return folder_ / "dump.npz"; }

  TemporaryFolder folder_;
  Arrays arrays_;
};

TEST_F(MeasureDump, GivesTheAccuracyAndNormOfTheLogits) {
  const auto readings = measured();
  EXPECT_DOUBLE_EQ(value_of(readings, "accuracy"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(value_of(readings, "logits_norm"), 6);
  EXPECT_DOUBLE_EQ(value_of(readings, "logits_norm_over_t"), 6);
  EXPECT_DOUBLE_EQ(value_of(readings, "logits_norm_per_sample"), 6 / std::sqrt(3));
  const double nll =
      (std::log(std::exp(2) + 2) - 2 + std::log(std::exp(4) + 2) - 4 + std::log(std::exp(4) + 2)) /
      3;
  EXPECT_NEAR(value_of(readings, "nll"), nll, 1e-12);
  for (const auto& reading : readings) EXPECT_FALSE(reading.definition.empty()) << reading.name;
}

TEST_F(MeasureDump, DividesByTheTemperatureOfTheDump) {
  set("temperature", torch::tensor(4.0, torch::kFloat64));
  const auto readings = measured();
  EXPECT_DOUBLE_EQ(value_of(readings, "logits_norm"), 6);
  EXPECT_DOUBLE_EQ(value_of(readings, "logits_norm_over_t"), 1.5);
  const double nll = (std::log(std::exp(0.5) + 2) - 0.5 + std::log(std::exp(1) + 2) - 1 +
                      std::log(std::exp(1) + 2)) /
                     3;
  EXPECT_NEAR(value_of(readings, "nll"), nll, 1e-12);
}

TEST_F(MeasureDump, GivesTheRankOfAProduct) {
  torch::manual_seed(0);
  const auto samples = torch::randn({50, 3}, torch::kFloat64);
  set("logits", samples.matmul(torch::randn({3, 8}, torch::kFloat64)));
  set("labels", torch::zeros({50}, torch::kInt64));
  EXPECT_EQ(value_of(measured({"solution_rank"}), "solution_rank"), 3);
}

TEST_F(MeasureDump, UsesTheBiasAndTheWidthOfTheClassifier) {
  set("weight", torch::eye(3));
  set("bias", torch::tensor({1.0, 2.0, 3.0}));
  std::set<bool> with_bias;
  for (const auto& reading : measured({"solution_rank"})) {
    with_bias.insert(reading.definition.at("bias").get<bool>());
  }
  EXPECT_EQ(with_bias, (std::set<bool>{false, true}));
}

TEST_F(MeasureDump, GivesTheSameForSinglePrecision) {
  const auto expected = value_of(measured(), "nll");
  set("logits", torch::tensor({{2.0F, 0.0F, 0.0F}, {0.0F, 4.0F, 0.0F}, {0.0F, 0.0F, 4.0F}}));
  EXPECT_DOUBLE_EQ(value_of(measured(), "nll"), expected);
}

TEST_F(MeasureDump, MeasuresOnlyWhatIsAskedFor) {
  std::set<std::string> names;
  for (const auto& reading : measured({"accuracy"})) names.insert(reading.name);
  EXPECT_EQ(names, (std::set<std::string>{"accuracy", "nll"}));
}

TEST_F(MeasureDump, TakesOutputsOfLayersAndFeaturesAsTheOnlyOneWithoutThem) {
  const auto layers = [&] {
    std::set<std::string> names;
    for (const auto& reading : measured({"layer_spectrum"})) names.insert(reading.layer);
    return names;
  };
  EXPECT_EQ(rejected({"layer_spectrum"}),
            "measure 'layer_spectrum' needs layers ('layer/NAME', or 'features'), which the dump "
            "does not have");
  set("features", noise({3, 4}, 0));
  EXPECT_EQ(layers(), std::set<std::string>{"features"});
  set("layer/a", noise({3, 2, 2, 2}, 1));
  set("layer/b", noise({3, 5}, 2));
  EXPECT_EQ(layers(), (std::set<std::string>{"a", "b"}));
}

TEST_F(MeasureDump, RejectsADumpThatIsNotOne) {
  arrays_.erase("labels");
  EXPECT_EQ(rejected(), "has no array 'labels'");
}

TEST_F(MeasureDump, WritesCurvesAndTakesSettingsOfMeasures) {
  set("features", noise({3, 4}, 0));
  write_npz(path(), arrays_);
  auto request = request_for({"layer_spectrum"});
  request.settings.set("measure.layer_spectrum.top", 1);
  request.curves = folder_ / "curves.npz";
  int64_t values = 0;
  for (const auto& reading : measure_dump(path(), request, {})) {
    if (reading.name == "singular_value") ++values;
  }
  EXPECT_EQ(values, 1);
  EXPECT_TRUE(read_npz(request.curves).contains("spectrum/features"));
  request.settings.set("measure.layer_spectrum.tip", 1);
  EXPECT_TRUE(error_of([&] {
                measure_dump(path(), request, {});
              }).starts_with("measure.layer_spectrum.tip: "));
}

TEST_F(MeasureDump, TakesTheTestSplitForNeuralCollapseIfItHasClasses) {
  set("features", noise({3, 4}, 0));
  set("weight", noise({3, 4}, 1));
  const auto has_collapse = [&] {
    for (const auto& reading : measured()) {
      if (reading.name == "nc3_self_duality" && reading.split == "test") return true;
    }
    return false;
  };
  EXPECT_TRUE(has_collapse());
  EXPECT_GT(value_of(measured({"neural_collapse"}), "nc1_trace_pinv"), 0);
  set("labels", torch::zeros({3}, torch::kInt64));
  EXPECT_FALSE(has_collapse());
  EXPECT_EQ(rejected({"neural_collapse"}),
            "measure 'neural_collapse' needs samples of at least two classes, which the dump does "
            "not have");
}

TEST_F(MeasureDump, LeavesOutWhatNeedsAllLayersUnlessAskedForIt) {
  for (const auto& reading : measured()) EXPECT_NE(reading.name, "probe_accuracy");
  EXPECT_EQ(
      rejected({"linear_probe"}),
      "measure 'linear_probe' needs layers on the training split, which the dump does not have");
}

TEST_F(MeasureDump, ReadsWhatNumPyWrites) {
  python_output(
      "import numpy as np, sys\n"
      "np.savez_compressed(sys.argv[1], logits=np.diag([2., 4., 4.]).astype('f4'),"
      " labels=np.array([0, 1, 0]), temperature=2.0)",
      {path()});
  const auto readings = measure_dump(path(), {}, {});
  EXPECT_DOUBLE_EQ(value_of(readings, "accuracy"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(value_of(readings, "logits_norm_over_t"), 3);
}

TEST_F(MeasureDump, UnknownMeasureNamesTheNearest) {
  const auto message = error_of([&] { measured({"acuracy"}); });
  EXPECT_TRUE(message.starts_with("no measure named 'acuracy'; did you mean 'accuracy'?"))
      << message;
}

TEST_F(MeasureDump, RejectsAFileThatIsNotThere) {
  const auto message = error_of([&] { measure_dump(folder_ / "none.npz", {}, {}); });
  EXPECT_NE(message.find(folder_ / "none.npz"), std::string::npos) << message;
}

// An array that is not asked for may be damaged, or of gigabytes.
TEST_F(MeasureDump, ReadsOnlyWhatTheMeasuresLookAt) {
  set("features", noise({7, 4}, 0));
  set("layer/a", noise({5, 4}, 0));
  EXPECT_DOUBLE_EQ(value_of(measured({"accuracy", "logits_norm"}), "accuracy"), 2.0 / 3);
  EXPECT_EQ(rejected({"neural_collapse"}),
            "'features' must have 3 rows and at least one column, got [7, 4]");
  set("features", noise({3, 4}, 0));
  EXPECT_EQ(value_of(measured({"solution_rank"}), "solution_rank"), 2);
  EXPECT_EQ(rejected({"layer_spectrum"}), "'layer/a' must be [3, ...], got [5, 4]");
  EXPECT_EQ(rejected(), "'layer/a' must be [3, ...], got [5, 4]");
}

TEST_F(MeasureDump, ReadsTheClassifierButNoFeaturesForTheRankOfLogits) {
  set("features", torch::zeros({7, 5}));  // of other samples
  set("weight", torch::zeros({3, 5}));
  set("bias", torch::tensor({1.0, 2.0, 3.0}));
  std::set<bool> has_bias;
  for (const auto& reading : measured({"solution_rank", "accuracy"})) {
    if (reading.name == "solution_rank") has_bias.insert(reading.definition.at("bias").get<bool>());
  }
  EXPECT_EQ(has_bias, (std::set<bool>{false, true}));
  EXPECT_EQ(rejected({"solution_rank", "neural_collapse"}),
            "'features' must have 3 rows and at least one column, got [7, 5]");
}

TEST_F(MeasureDump, SaysInTheDefinitionWhatWasDumpedIn16Bits) {
  const auto whole = measured();
  const auto logits = torch::tensor({{2.0, 0.0, 0.0}, {0.0, 4.0, 0.0}, {0.0, 0.0, 4.0}});
  for (const auto type : {torch::kFloat16, torch::kBFloat16}) {
    const std::string name = type == torch::kFloat16 ? "float16" : "bfloat16";
    set("logits", logits.to(type));
    write_npz(path(), arrays_);
    std::vector<std::string> told;
    RunContext context;
    context.inform = [&](const std::string& text) { told.push_back(text); };
    const auto readings = measure_dump(path(), {}, context);
    ASSERT_EQ(readings.size(), whole.size());
    for (size_t i = 0; i < whole.size(); ++i) {
      EXPECT_EQ(readings[i].definition.at("dumped"), "logits as " + name);
      EXPECT_NEAR(readings[i].value, whole[i].value, 1e-9) << whole[i].name;
      EXPECT_FALSE(whole[i].definition.contains("dumped"));
    }
    const bool is_guessed = !told.empty() && told[0].ends_with("no type; taken for bfloat16");
    EXPECT_EQ(is_guessed, type == torch::kBFloat16);
  }
}

}  // namespace kelvin::measure_dump_test
