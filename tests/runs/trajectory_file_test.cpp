#include "kelvin/runs/trajectory_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "kelvin/core/files.h"
#include "kelvin/runs/run_folder.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin {
namespace {

const std::string kFirst = R"({"step":0,"epoch":0.0,"logits_singular_values":[],"readings":[]})";
const std::string kSecond =
    R"({"step":20,"epoch":0.5,"logits_singular_values":[4.0,0.25],"readings":[)"
    R"({"name":"alignment","value":0.5,"split":"test"},)"
    R"({"name":"gradient_singular_value","value":2.0,"layer":"fc","split":"train","index":3},)"
    R"({"name":"auroc","value":0.75,"detector":"msp","ood":"svhn","low":0.5,"high":1.0}]})";

std::vector<TrajectoryLine> loaded(const std::string& content) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "trajectory.jsonl", content);
  return load_trajectory(folder.path());
}

std::string refusal_of(const std::string& content) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "trajectory.jsonl", content);
  const auto message = error_of([&] { load_trajectory(folder.path()); });
  EXPECT_TRUE(message.starts_with(folder.path().string())) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message.substr(folder.path().string().size() + 1);
}

TEST(LoadTrajectory, GivesStepsSpectraAndReadings) {
  const auto trajectory = loaded(kFirst + "\n" + kSecond + "\n");
  ASSERT_EQ(trajectory.size(), 2U);
  EXPECT_EQ(trajectory[0].step, 0);
  EXPECT_TRUE(trajectory[0].readings.empty());
  const auto& second = trajectory[1];
  EXPECT_EQ(second.step, 20);
  EXPECT_EQ(second.epoch, 0.5);
  EXPECT_EQ(second.logits_singular_values, (std::vector<double>{4, 0.25}));
  const auto written = nlohmann::ordered_json::parse(kSecond).at("readings");
  ASSERT_EQ(second.readings.size(), written.size());
  for (size_t i = 0; i < written.size(); ++i) {
    EXPECT_EQ(fields_of(second.readings[i]), written[i]);
    EXPECT_EQ(second.readings[i].definition, Definition::object());
  }
}

TEST(LoadTrajectory, OfAFolderWithoutOneIsEmpty) {
  const TemporaryFolder folder;
  EXPECT_TRUE(load_trajectory(folder.path()).empty());
  EXPECT_TRUE(load_trajectory(folder.path() / "absent").empty());
  EXPECT_TRUE(loaded("").empty());
}

TEST(LoadTrajectory, TurnsWhatJsonCannotHoldIntoNan) {
  const auto trajectory = loaded(R"({"step":1,"epoch":1,"logits_singular_values":[null],)"
                                 R"("readings":[{"name":"a","value":null}]})"
                                 "\n");
  ASSERT_EQ(trajectory.size(), 1U);
  EXPECT_TRUE(std::isnan(trajectory[0].logits_singular_values.at(0)));
  EXPECT_TRUE(std::isnan(trajectory[0].readings.at(0).value));
}

TEST(LoadTrajectory, LosesOnlyTheLineThatACrashCutShort) {
  const auto both = kFirst + "\n" + kSecond;
  for (size_t length = kFirst.size(); length < both.size(); ++length) {
    EXPECT_EQ(loaded(both.substr(0, length)).size(), 1U) << "cut to " << length;
  }
  EXPECT_EQ(loaded(both).size(), 2U) << "only the line's end is missing";
}

TEST(LoadTrajectory, RefusesWhatIsNoLookAndSaysWhere) {
  EXPECT_EQ(refusal_of(kFirst + "\nx\n" + kSecond + "\n"),
            "trajectory.jsonl: line 2: not a JSON object");
  for (const std::string line :
       {R"({})", R"({"step":"x","epoch":0,"logits_singular_values":[],"readings":[]})",
        R"({"step":1,"epoch":0,"logits_singular_values":[],"readings":[{"name":"a"}]})",
        R"({"step":1,"epoch":0,"logits_singular_values":5,"readings":[]})",
        R"({"step":1,"epoch":0,"logits_singular_values":[],"readings":{"name":"a"}})"}) {
    EXPECT_TRUE(refusal_of(kFirst + "\n" + line + "\n").starts_with("trajectory.jsonl: line 2: "))
        << line;
  }
}

TEST(LoadTrajectory, IsAPartOfARun) {
  const TemporaryFolder folder;
  Config config;
  config.set("seed", 3);
  const auto run = RunFolder::create(folder / "run", config, {});
  EXPECT_TRUE(load_run(run.path()).trajectory.empty());
  write_file_atomically(run.path() / "trajectory.jsonl", kFirst + "\n" + kSecond + "\n");
  EXPECT_EQ(load_run(run.path()).trajectory.size(), 2U);
}

}  // namespace
}  // namespace kelvin
