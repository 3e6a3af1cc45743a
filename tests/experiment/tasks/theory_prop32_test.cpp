#include "kelvin/experiment/tasks/theory_prop32.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "kelvin/experiment/run/run.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/tiny_run.h"

namespace kelvin::theory_prop32_test {

const Reading& find(const Readings& readings, const std::string& name) {
  for (const auto& reading : readings) {
    if (reading.name == name) return reading;
  }
  throw std::runtime_error(name + " is missing");
}

TEST(TheoryProp32, ConstructsSolutionsOfRankTwo) {
  const auto readings = theory_prop32({.classes = {10, 100}, .probabilities = {0.9}}, {});
  EXPECT_NEAR(readings.at(0).value, 15, 0.5);
  for (const auto& reading : readings) {
    if (reading.name == "solution_rank") {
      EXPECT_EQ(reading.value, 2);
    }
    if (reading.name == "accuracy") {
      EXPECT_EQ(reading.value, 1);
    }
    if (reading.name == "smallest_true_probability") {
      EXPECT_NEAR(reading.value, 0.9, 1e-3);
    }
  }
}

TEST(TheoryProp32, LooksAtEveryTrainingImageOfARun) {
  const TemporaryFolder folder;
  run(tiny_config({R"(measure.names=["accuracy"])", "data.ood=[]", "model.bottleneck=2",
                   "measure.train_samples=20"}),
      folder / "run", kNoMetadata, {});
  const auto readings = theory_prop32({.run = folder / "run"}, {});
  EXPECT_EQ(find(readings, "accuracy").definition.at("samples"), 256);
  EXPECT_LE(find(readings, "solution_rank").value, 2);
  EXPECT_LT(find(readings, "solution_rank").definition.at("sigma_3_over_sigma_1"), 1e-6);
  // Two epochs are not enough to be sure of each of them.
  EXPECT_LT(find(readings, "smallest_true_probability").value, 0.5);
  EXPECT_GT(find(readings, "samples_below_half").value, 0);
  for (const auto& reading : readings) EXPECT_EQ(reading.split, "train");
}

TEST(TheoryProp32, RejectsWhatHasNoCircle) {
  EXPECT_EQ(error_of([] { theory_prop32({.classes = {2}}, {}); }),
            "theory prop32: classes must be from 3 to 2000, got 2");
  EXPECT_EQ(error_of([] { theory_prop32({.classes = {3}, .probabilities = {1}}, {}); }),
            "circle_scale: the probability must be between 1 / classes and 1, got 1");
}

}  // namespace kelvin::theory_prop32_test
