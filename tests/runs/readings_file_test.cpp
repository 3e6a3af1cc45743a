#include "kelvin/runs/readings_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "kelvin/core/files.h"
#include "kelvin/runs/run_folder.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin::readings_file_test {

const Definition kLogits = {{"matrix", "logits"}, {"gamma", 1e-3}};
const Definition kProbabilities = {{"matrix", "probabilities"}, {"gamma", 1e-3}};

void expect_equal(const Reading& actual, const Reading& expected) {
  EXPECT_EQ(fields_of(actual), fields_of(expected));
  EXPECT_EQ(actual.definition, expected.definition);
}

// A folder with one reading whose file then gets another content.
std::string refusal_of(const std::string& file, const std::string& content) {
  const TemporaryFolder folder;
  merge_readings(folder.path(), {{.name = "rank", .value = 3, .definition = kLogits}});
  write_file_atomically(folder / file, content);
  const auto message = error_of([&] { load_readings(folder.path()); });
  EXPECT_TRUE(message.starts_with(folder.path().string())) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message.substr(folder.path().string().size() + 1);
}

TEST(LoadReadings, GivesBackWhatWasMerged) {
  const TemporaryFolder folder;
  const Readings readings = {{.name = "rank", .value = 1.0 / 3, .definition = kLogits},
                             {.name = "auroc",
                              .value = 0.5,
                              .layer = "layer1",
                              .split = "test",
                              .detector = "msp",
                              .ood = "textures",
                              .index = 0,
                              .definition = kProbabilities}};
  merge_readings(folder.path(), readings);
  const auto loaded = load_readings(folder.path());
  ASSERT_EQ(loaded.size(), 2U);
  expect_equal(loaded[0], readings[0]);
  expect_equal(loaded[1], readings[1]);
}

TEST(LoadReadings, OfAFolderWithoutAnyIsEmpty) {
  const TemporaryFolder folder;
  EXPECT_TRUE(load_readings(folder.path()).empty());
  EXPECT_TRUE(load_readings(folder.path() / "absent").empty());
}

TEST(LoadReadings, TurnsWhatJsonCannotHoldIntoNan) {
  const TemporaryFolder folder;
  merge_readings(folder.path(), {{.name = "a", .value = std::nan("")},
                                 {.name = "b", .value = std::numeric_limits<double>::infinity()}});
  for (const auto& reading : load_readings(folder.path())) EXPECT_TRUE(std::isnan(reading.value));
}

TEST(MergeReadings, ReplacesAReadingThatSaysTheSameThing) {
  const TemporaryFolder folder;
  merge_readings(folder.path(), {{.name = "rank", .value = 1, .definition = kLogits},
                                 {.name = "norm", .value = 5, .definition = kLogits}});
  merge_readings(folder.path(), {{.name = "rank", .value = 2, .definition = kLogits}});
  const auto loaded = load_readings(folder.path());
  ASSERT_EQ(loaded.size(), 2U);
  EXPECT_EQ(loaded[0].value, 2);
  EXPECT_EQ(loaded[1].value, 5);
}

// Means over datasets, one of which is measured anew, are means of what is no longer there.
TEST(MergeReadings, DropsMeansOfWhatItReplaces) {
  const TemporaryFolder folder;
  const auto auroc = [](const std::string& detector, const std::string& ood, double value) {
    return Reading{.name = "auroc",
                   .value = value,
                   .detector = detector,
                   .ood = ood,
                   .definition = {{"score", detector}, {"fit", value}}};
  };
  auto mean = auroc("msp", "far", 0.5);
  mean.definition["mean_over"] = {"svhn", "mnist"};
  auto other = mean;
  other.detector = "neco";
  merge_readings(folder.path(), {auroc("msp", "svhn", 0.4), auroc("msp", "mnist", 0.6), mean,
                                 auroc("neco", "svhn", 0.4), other});
  merge_readings(folder.path(), {auroc("msp", "svhn", 0.9)});
  std::vector<std::string> left;
  for (const auto& each : load_readings(folder.path())) left.push_back(each.detector + each.ood);
  EXPECT_EQ(left, (std::vector<std::string>{"mspsvhn", "mspmnist", "necosvhn", "necofar"}));
  // No definition is kept that nobody refers to.
  EXPECT_EQ(nlohmann::json::parse(read_file(folder / "definitions.json")).size(), 4U);
}

TEST(MergeReadings, KeepsReadingsThatDifferInAnythingButTheValue) {
  const TemporaryFolder folder;
  const Readings readings = {{.name = "rank", .value = 1, .definition = kLogits},
                             {.name = "rank", .value = 1, .definition = kProbabilities},
                             {.name = "rank", .value = 1, .layer = "a", .definition = kLogits},
                             {.name = "rank", .value = 1, .split = "a", .definition = kLogits},
                             {.name = "rank", .value = 1, .detector = "a", .definition = kLogits},
                             {.name = "rank", .value = 1, .ood = "a", .definition = kLogits},
                             {.name = "rank", .value = 1, .index = 0, .definition = kLogits},
                             {.name = "rank", .value = 1, .index = 1, .definition = kLogits}};
  merge_readings(folder.path(), readings);
  merge_readings(folder.path(), readings);
  EXPECT_EQ(load_readings(folder.path()).size(), readings.size());
}

TEST(MergeReadings, StoresEachDefinitionOnce) {
  const TemporaryFolder folder;
  merge_readings(folder.path(), {{.name = "a", .value = 1, .definition = kLogits},
                                 {.name = "b", .value = 2, .definition = kLogits},
                                 {.name = "c", .value = 3, .definition = kProbabilities}});
  const auto definitions = nlohmann::json::parse(read_file(folder / "definitions.json"));
  ASSERT_EQ(definitions.size(), 2U);
  EXPECT_EQ(definitions.at(definition_id(kLogits)), kLogits);
}

TEST(MergeReadings, WritesOneJsonObjectPerLine) {
  const TemporaryFolder folder;
  merge_readings(folder.path(), {{.name = "a", .value = 0.5, .definition = kLogits}});
  EXPECT_EQ(read_file(folder / "readings.jsonl"),
            R"({"name":"a","value":0.5,"definition":")" + definition_id(kLogits) + "\"}\n");
}

TEST(MergeReadings, OfNothingKeepsWhatIsThere) {
  const TemporaryFolder folder;
  merge_readings(folder.path(), {{.name = "a", .value = 1}});
  merge_readings(folder.path(), {});
  EXPECT_EQ(load_readings(folder.path()).size(), 1U);
}

TEST(DefinitionId, IsTheSameWhateverTheOrderOfTheKeys) {
  EXPECT_EQ(definition_id({{"a", 1}, {"b", 2}}), definition_id({{"b", 2}, {"a", 1}}));
}

TEST(DefinitionId, DiffersBetweenDefinitions) {
  EXPECT_NE(definition_id(kLogits), definition_id(kProbabilities));
  EXPECT_NE(definition_id(Definition::object()), definition_id(kLogits));
}

TEST(DefinitionId, IsTwelveHexadecimalDigits) {
  const auto id = definition_id(kLogits);
  EXPECT_EQ(id.size(), 12U);
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos) << id;
}

TEST(LoadReadings, NamesFileAndLineOfWhatIsNoReading) {
  const auto id = definition_id(kLogits);
  const auto good = R"({"name":"a","value":1,"definition":")" + id + "\"}\n";
  for (const std::string& bad :
       {std::string("not json"), std::string("5"), std::string("{}"), std::string("[1]"),
        R"({"name":3,"value":1,"definition":")" + id + "\"}",
        R"({"name":"a","value":"x","definition":")" + id + "\"}",
        R"({"name":"a","value":1,"layer":5,"definition":")" + id + "\"}",
        R"({"name":"a","value":1,"index":"x","definition":")" + id + "\"}",
        std::string(R"({"name":"a","value":1})"),
        std::string(R"({"name":"a","value":1,"definition":"absent"})")}) {
    const auto message = refusal_of("readings.jsonl", good + bad + "\n");
    EXPECT_TRUE(message.starts_with("readings.jsonl: line 2: ")) << message;
  }
}

TEST(LoadReadings, NamesTheDefinitionsWhenTheyAreDamaged) {
  EXPECT_EQ(refusal_of("definitions.json", "{\"a\":"), "definitions.json: not a JSON object");
  EXPECT_EQ(refusal_of("definitions.json", "[]"), "definitions.json: not a JSON object");
}

TEST(LoadReadings, NamesTheDefinitionsWhenTheyAreMissing) {
  const TemporaryFolder folder;
  merge_readings(folder.path(), {{.name = "a", .value = 1}});
  std::filesystem::remove(folder / "definitions.json");
  EXPECT_EQ(error_of([&] { load_readings(folder.path()); }),
            (folder / "definitions.json") + ": cannot read: No such file or directory");
}

TEST(MergeReadings, ReplacesThoseOfADetectorWhateverItFound) {
  const TemporaryFolder folder;
  Reading reading{.name = "auroc",
                  .value = 0.8,
                  .detector = "vim",
                  .ood = "svhn",
                  .interval = Interval{.low = 0.7, .high = 0.9},
                  .definition = {{"alpha", 1}}};
  auto other = reading;
  other.ood = "cifar100";
  merge_readings(folder.path(), {reading, other});
  reading.value = 0.9;
  reading.interval = Interval{.low = 0.85, .high = 0.95};
  reading.definition["alpha"] = 2;
  merge_readings(folder.path(), {reading});
  const auto loaded = load_readings(folder.path());
  ASSERT_EQ(loaded.size(), 2U);
  EXPECT_EQ(loaded[0].value, 0.9);
  EXPECT_EQ(loaded[0].definition.at("alpha"), 2);
  EXPECT_EQ(loaded[1].ood, "cifar100");
}

TEST(IdentityOf, DependsOnEverythingButTheValue) {
  const Reading reading{.name = "a", .value = 1, .split = "test", .definition = {{"gamma", 1}}};
  auto other = reading;
  other.value = 2;
  other.interval = Interval{.low = 1, .high = 3};
  EXPECT_EQ(identity_of(reading), identity_of(other));
  other.split = "train";
  EXPECT_NE(identity_of(reading), identity_of(other));
  other = reading;
  other.index = 0;
  EXPECT_NE(identity_of(reading), identity_of(other));
  other = reading;
  other.definition["gamma"] = 2;
  EXPECT_NE(identity_of(reading), identity_of(other));
}

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

}  // namespace kelvin::readings_file_test
