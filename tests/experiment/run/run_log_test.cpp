#include "kelvin/experiment/run/run_log.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstring>
#include <fstream>
#include <set>

#include "kelvin/core/files.h"
#include "kelvin/formats/npz_file.h"
#include "kelvin/runs/readings_file.h"
#include "tests/support/errors.h"
#include "tests/support/train_state.h"

namespace kelvin::run_log_test {

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

TEST(RunLog, KeepsTheDefinitionOfEachReadingOfItsTrajectory) {
  ObservedTraining training;
  const auto lines = training.run.path() / "trajectory.jsonl";
  const auto file = training.run.path() / "trajectory_definitions.json";
  const Definition of_rank = {{"gamma", 1e-3}, {"matrix", "M"}};
  training.log.add_trajectory(1, 0.5,
                              {{.name = "rank", .value = 7, .definition = of_rank},
                               {.name = "rank", .value = 9, .definition = {{"gamma", 1e-2}}},
                               {.name = "norm", .value = 5}});
  const auto readings = load_lines(lines).at(0).at("readings");
  ASSERT_EQ(readings.size(), 2U);
  EXPECT_EQ(readings[0].at("definition"), definition_id(of_rank));
  EXPECT_EQ(readings[1].at("definition"), definition_id(Definition::object()));
  // None of what has no place in the line.
  EXPECT_EQ(nlohmann::json::parse(whole_file(file)),
            nlohmann::json({{definition_id(of_rank), of_rank},
                            {definition_id(Definition::object()), Definition::object()}}));
}

TEST(RunLog, ThatGoesOnKeepsTheDefinitionsThatWereThere) {
  ObservedTraining training;
  const auto lines = training.run.path() / "trajectory.jsonl";
  const auto file = training.run.path() / "trajectory_definitions.json";
  const auto look = [](int64_t t) {
    return Readings{{.name = "norm", .value = 2, .definition = {{"temperature", t}}}};
  };
  training.log.add_trajectory(0, 0, look(1));
  const auto sizes = training.log.sizes();
  training.log.add_trajectory(1, 1, look(2));
  const auto straight = whole_file(lines);
  const auto definitions = whole_file(file);
  RunLog::cut_back(training.run.path(), sizes);
  const RunLog again(training.run, training.context, 1);
  fs::remove(file);  // written again only for what is new
  again.add_trajectory(1, 1, look(2));
  EXPECT_EQ(whole_file(lines), straight);
  EXPECT_FALSE(fs::exists(file));
  again.add_trajectory(2, 2, look(3));
  EXPECT_EQ(nlohmann::json::parse(whole_file(file)).size(), 3U);
  EXPECT_EQ(whole_file(file).substr(0, definitions.size() - 3),
            definitions.substr(0, definitions.size() - 3));  // all but "\n}\n"
}

TEST(RunLog, RejectsDefinitionsThatAreNone) {
  ObservedTraining training;
  write_file_atomically(training.run.path() / "trajectory_definitions.json", "[1]");
  const auto message = error_of([&] { const RunLog log(training.run, training.context, 1); });
  EXPECT_NE(message.find("trajectory_definitions.json: not a JSON object"), std::string::npos)
      << message;
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

TEST(RunLog, KeepsCurvesOfLooksAsLongAsTheirLines) {
  ObservedTraining training;
  const auto folder = training.run.path() / "trajectory";
  const auto look = [&](int64_t step) {
    const auto value = static_cast<double>(step);
    training.log.add_curves(step, {{"alignment/conv", torch::full({2, 3}, value)}});
    training.log.add_trajectory(step, 0, {});
  };
  training.log.add_curves(0, {});
  EXPECT_FALSE(fs::exists(folder));
  look(0);
  look(5);
  const auto sizes = training.log.sizes();
  const auto before = whole_file(folder / "step-5.npz");
  look(7);
  // Killed between the curves of a look and its line, and within curves.
  training.log.add_curves(9, {{"alignment/conv", torch::zeros({1})}});
  for (const char* name : {"step-9.npz.part", "notes.txt"})
    write_file_atomically(folder / name, "");
  RunLog::cut_back(training.run.path(), sizes);
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"step-0.npz", "step-5.npz", "notes.txt"}));
  EXPECT_EQ(whole_file(folder / "step-5.npz"), before);
  const auto curves = read_npz(folder / "step-5.npz");
  ASSERT_EQ(curves.size(), 1U);
  EXPECT_EQ(curves.at("alignment/conv").shape, (std::vector<int64_t>{2, 3}));
  RunLog::cut_back(training.run.path(), {});
  EXPECT_FALSE(fs::exists(folder / "step-0.npz"));
}

TEST(RunLog, TellsWhereCurvesCannotBeWrittenOrRemoved) {
  ObservedTraining training;
  const auto folder = training.run.path() / "trajectory";
  write_file_atomically(folder, "");
  const auto message = error_of([&] { training.log.add_curves(1, {{"a", torch::zeros({1})}}); });
  EXPECT_EQ(message.find(folder.string() + ": cannot be made: "), 0U) << message;
  fs::remove(folder);
  fs::create_directories(folder / "step-1.npz/not a file");
  const auto other = error_of([&] { RunLog::cut_back(training.run.path(), {}); });
  EXPECT_EQ(other.find((folder / "step-1.npz").string() + ": cannot be removed: "), 0U) << other;
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

}  // namespace kelvin::run_log_test
