#include "kelvin/experiment/tasks/theory_prop31.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "kelvin/experiment/run/run.h"
#include "kelvin/experiment/run/run_store.h"
#include "kelvin/formats/npz_file.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"
#include "tests/support/tiny_run.h"

namespace kelvin::theory_prop31_test {

double value_of(const Readings& readings, const std::string& name,
                const std::string& wanted_case = "") {
  for (const auto& reading : readings) {
    if (reading.name == name && reading.definition.value("case", std::string()) == wanted_case) {
      return reading.value;
    }
  }
  ADD_FAILURE() << name << " is missing";
  return 0;
}

TEST(TheoryProp31, HoldsForRandomMatrices) {
  const auto readings = theory_prop31({.matrices = 400, .most_size = 12}, {});
  EXPECT_EQ(value_of(readings, "singular_gap_violations"), 0);
  EXPECT_GE(value_of(readings, "singular_gap_slack"), -1e-12);
  // One mean for each of the five decades.
  EXPECT_EQ(std::count_if(readings.begin(), readings.end(),
                          [](const Reading& each) {
                            return each.name == "singular_gap" &&
                                   each.definition.contains("scale_from");
                          }),
            5);
}

TEST(TheoryProp31, ShowsTheTightAndTheLooseCase) {
  const auto readings = theory_prop31({.matrices = 1, .most_size = 3}, {});
  EXPECT_NEAR(value_of(readings, "singular_gap", "tight"), std::sqrt(2.0), 1e-12);
  EXPECT_NEAR(value_of(readings, "singular_gap_bound", "tight"), std::sqrt(2.0), 1e-12);
  EXPECT_NEAR(value_of(readings, "singular_gap", "loose"), 0, 1e-12);
  EXPECT_NEAR(value_of(readings, "singular_gap_bound", "loose"), 1 - std::sqrt(0.5), 1e-12);
}

TEST(TheoryProp31, TakesLogitsAndTheirTemperatureFromADump) {
  const TemporaryFolder folder;
  const auto logits = noise({6, 4}, 0);
  const std::filesystem::path npz = folder / "x.npz";
  write_npz(npz, {{"logits", array_of(logits)}, {"temperature", array_of(torch::tensor(2.0))}});
  const auto hot = theory_prop31({.dump = npz}, {});
  write_npz(npz, {{"logits", array_of(logits / 2)}});
  const auto cold = theory_prop31({.dump = npz}, {});
  EXPECT_NEAR(value_of(hot, "singular_gap"), value_of(cold, "singular_gap"), 1e-12);
  EXPECT_LE(value_of(hot, "singular_gap"), value_of(hot, "singular_gap_bound"));
  EXPECT_EQ(theory_prop31({.dump = npz, .samples = 3}, {}).at(0).definition.at("samples"), 3);
}

TEST(TheoryProp31, HoldsForATrainedNetwork) {
  const TemporaryFolder folder;
  run(tiny_config({R"(measure.names=["accuracy"])", "data.ood=[]", "train.epochs=1"}),
      folder / "run", kNoMetadata, {});
  const auto readings = theory_prop31({.run = folder / "run"}, {});
  EXPECT_EQ(readings.at(0).split, "test");
  EXPECT_EQ(readings.at(0).definition.at("temperature"), 2);
  EXPECT_EQ(readings.at(0).definition.at("samples"), 128);
  EXPECT_LE(value_of(readings, "singular_gap"), value_of(readings, "singular_gap_bound"));
}

TEST(TheoryProp31, RejectsWhatItCannotDraw) {
  EXPECT_EQ(error_of([] { theory_prop31({.matrices = 0}, {}); }),
            "theory prop31: matrices must be from 1 to 10000000, got 0");
  EXPECT_EQ(error_of([] { theory_prop31({.least_size = 5, .most_size = 4}, {}); }),
            "theory prop31: sizes must go up from at least 2 to at most 1000, got 5 to 4");
  EXPECT_EQ(error_of([] { theory_prop31({.samples = -1}, {}); }),
            "theory prop31: samples must not be below 0, got -1");
  EXPECT_EQ(error_of([] { theory_prop31({}, {.should_stop = [] { return true; }}); }),
            "stopped after 0 matrices; nothing is shown");
}

}  // namespace kelvin::theory_prop31_test
