#include "kelvin/experiment/run_log.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstring>
#include <fstream>

#include "kelvin/core/npz_file.h"
#include "tests/support/errors.h"
#include "tests/support/train_state.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

std::vector<double> doubles_of(const Array& array) {
  std::vector<double> values(static_cast<size_t>(array.size()));
  std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

int64_t event_files(const fs::path& run) {
  int64_t count = 0;
  for (const auto& entry : fs::directory_iterator(run)) {
    count += entry.path().filename().string().starts_with("events.out.tfevents.") ? 1 : 0;
  }
  return count;
}

TEST(RunLog, GivesBackTheMetricsToTheLastBit) {
  ObservedTraining training;
  const nlohmann::ordered_json line = {{"step", 3}, {"loss", 0.1 + 0.2}, {"epoch", 1e-300}};
  training.log.add_metrics(line);
  ASSERT_EQ(training.log.metrics().size(), 1U);
  EXPECT_EQ(training.log.metrics()[0], line);
}

TEST(RunLog, HasOfEachNameTheFirstDefinitionInItsTrajectory) {
  ObservedTraining training;
  training.log.add_trajectory(
      1, 0.5,
      {{.name = "rank", .value = 7, .layer = "fc", .definition = {{"a", 1}}},
       {.name = "rank", .value = 9, .layer = "fc", .definition = {{"a", 2}}},
       {.name = "rank", .value = 5, .layer = "conv"}});
  const auto lines = load_lines(training.run.path() / "trajectory.jsonl");
  ASSERT_EQ(lines.size(), 1U);
  const auto& readings = lines[0].at("readings");
  ASSERT_EQ(readings.size(), 2U);
  EXPECT_EQ(readings[0].at("value"), 7);
  EXPECT_EQ(readings[1].at("layer"), "conv");
}

TEST(RunLog, MakesCurvesOfTheTrajectory) {
  ObservedTraining training;
  const auto spectrum = [](double first) {
    return Readings{{.name = "singular_value", .value = first, .index = 0},
                    {.name = "singular_value", .value = 0.5, .index = 1},
                    {.name = "rank", .value = 7, .layer = "fc"}};
  };
  training.log.add_trajectory(0, 0, spectrum(3));
  training.log.add_trajectory(5, 0.25, spectrum(4));
  training.log.write_curves();
  const auto curves = read_npz(training.run.path() / "curves.npz");
  EXPECT_EQ(doubles_of(curves.at("steps")), (std::vector<double>{0, 5}));
  EXPECT_EQ(doubles_of(curves.at("epochs")), (std::vector<double>{0, 0.25}));
  EXPECT_EQ(doubles_of(curves.at("logits_singular_values")), (std::vector<double>{3, 0.5, 4, 0.5}));
  EXPECT_NE(whole_file(training.run.path() / "trajectory.jsonl").find("\"layer\":\"fc\""),
            std::string::npos);
}

TEST(RunLog, IsCutBackToAnEarlierMoment) {
  ObservedTraining training;
  const auto metrics = training.run.path() / "metrics.jsonl";
  training.log.add_metrics({{"step", 0}});
  const auto sizes = training.log.sizes();
  const auto before = whole_file(metrics);
  training.log.add_metrics({{"step", 1}});
  training.log.add_note(1, "something");
  std::ofstream(metrics, std::ios::app) << "{\"cut sho";
  RunLog::cut_back(training.run.path(), sizes);
  EXPECT_EQ(whole_file(metrics), before);
  EXPECT_EQ(whole_file(training.run.path() / "notes.jsonl"), "");
  RunLog::cut_back(training.run.path(), {});
  EXPECT_EQ(whole_file(metrics), "");
}

TEST(RunLog, ThatLostSomethingIsAnError) {
  ObservedTraining training;
  training.log.add_metrics({{"step", 0}});
  const auto sizes = training.log.sizes();
  fs::resize_file(training.run.path() / "metrics.jsonl", 3);
  const auto message = error_of([&] { RunLog::cut_back(training.run.path(), sizes); });
  EXPECT_NE(message.find("metrics.jsonl"), std::string::npos) << message;
}

TEST(RunLog, StartsNewEventsForEachProcess) {
  ObservedTraining training;
  EXPECT_EQ(event_files(training.run.path()), 1);
  const RunLog again(training.run, training.context, 10);
  EXPECT_EQ(event_files(training.run.path()), 2);
}

}  // namespace
}  // namespace kelvin
