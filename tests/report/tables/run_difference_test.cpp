#include "kelvin/report/tables/run_difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "kelvin/core/text.h"
#include "tests/report/report_runs.h"

namespace kelvin::run_difference_test {

using Json = nlohmann::json;

std::vector<std::string> names_of(const std::vector<ToldByTwo>& pairs) {
  std::vector<std::string> names;
  for (const auto& pair : pairs) names.push_back(pair.name + "=" + pair.a + "|" + pair.b);
  return names;
}

Reading accuracy(double value, int64_t samples = 100) {
  return {
      .name = "accuracy", .value = value, .split = "test", .definition = {{"samples", samples}}};
}

TEST(RunDifference, TellsSettingsThatDiffer) {
  auto a = bare_run(1, 0);
  auto b = bare_run(100, 0);
  a.config.set("data.name", "glyphs100");
  b.config.set("train.loss", "mse");
  b.config.set("train.note", "");
  a.config.set("train.lr", 0.1);
  b.config.set("train.lr", 0.1000000001);
  EXPECT_EQ(names_of(run_difference(a, b).settings),
            (std::vector<std::string>{"data.name=glyphs100|", "train.loss=|mse",
                                      "train.lr=0.1|0.1000000001", "train.note=|\"\"",
                                      "train.temperature=1.0|100.0"}));
}

TEST(RunDifference, TakesEqualNumbersForEqualHoweverTheyAreWritten) {
  auto a = bare_run(1, 0);
  auto b = bare_run(1, 0);
  a.config.set("train.momentum", 1);
  b.config.set("train.momentum", 1.0);
  a.config.set("train.limit", std::nan(""));
  b.config.set("train.limit", std::nan(""));
  EXPECT_TRUE(run_difference(a, b).settings.empty());
  EXPECT_EQ(run_difference(a, b, /*all=*/true).settings.size(), 4U);
}

TEST(RunDifference, TellsMetadataThatMayChangeResults) {
  auto a = bare_run(1, 0);
  auto b = bare_run(1, 0);
  a.metadata = {
      {"commit", "abc"},
      {"command", "kelvin train x"},
      {"started", "yesterday"},
      {"versions",
       {{"torch", "1.13.0"}, {"blas", "generic"}, {"cpu_capability", "AVX2"}, {"threads", 1}}},
      {"machine", {{"cpu", "X"}, {"memory_bytes", 1}}}};
  b.metadata = a.metadata;
  EXPECT_TRUE(run_difference(a, b).metadata.empty());
  b.metadata["commit"] = "def";
  b.metadata["command"] = "kelvin train y";
  b.metadata["started"] = "today";
  b.metadata["versions"]["threads"] = 2;
  b.metadata["versions"]["cpu_capability"] = "AVX512";
  b.metadata["versions"].erase("blas");
  b.metadata["machine"] = {{"cpu", "Y"}, {"memory_bytes", 2}};
  EXPECT_EQ(names_of(run_difference(a, b).metadata),
            (std::vector<std::string>{"blas=generic|", "commit=abc|def", "cpu=X|Y",
                                      "cpu_capability=AVX2|AVX512", "threads=1|2"}));
  EXPECT_EQ(run_difference(a, b, /*all=*/true).metadata.size(), 6U);
}

TEST(RunDifference, ToleratesMetadataOfAnyShape) {
  const auto a = bare_run(1, 0);
  auto b = bare_run(1, 0);
  b.metadata = {{"versions", 3}, {"machine", Json::array()}, {"commit", nullptr}};
  EXPECT_EQ(names_of(run_difference(a, b).metadata), std::vector<std::string>{"commit=|null"});
  b.metadata = nullptr;
  EXPECT_TRUE(run_difference(a, b).metadata.empty());
}

TEST(RunDifference, ComparesReadingsOfTheSameThingAndDefinition) {
  auto a = run_with_rank(1, 0, 90);
  auto b = run_with_rank(1, 0, 40);
  a.readings.push_back(accuracy(0.5));
  b.readings.push_back(accuracy(0.5));
  auto train = accuracy(0.75);
  train.split = "train";
  a.readings.push_back(train);  // A alone has it
  a.readings.push_back(accuracy(0.25, 200));
  b.readings.push_back(accuracy(0.125, 300));  // another definition, and
  b.readings.push_back(accuracy(0.125, 400));  // another
  b.readings.push_back(accuracy(0.125, 500));
  const auto difference = run_difference(a, b);
  ASSERT_EQ(difference.readings.size(), 1U);
  EXPECT_EQ(difference.readings[0].a.name, "solution_rank");
  EXPECT_EQ(difference.readings[0].a.value, 90);
  EXPECT_EQ(difference.readings[0].b, 40);
  EXPECT_EQ(difference.only_in_a, 2);
  EXPECT_EQ(difference.only_in_b, 3);
  EXPECT_EQ(not_compared_text(difference),
            "2 readings of A and 3 of B are not compared: the other run has none by the same "
            "definition");
  EXPECT_EQ(run_difference(a, b, /*all=*/true).readings.size(), 2U);
}

TEST(RunDifference, TakesNanForEqualToNanAlone) {
  auto a = bare_run(1, 0);
  auto b = bare_run(1, 0);
  a.readings = {accuracy(std::nan(""), 1), accuracy(std::nan(""), 2)};
  b.readings = {accuracy(std::nan(""), 1), accuracy(0.5, 2)};
  const auto difference = run_difference(a, b);
  ASSERT_EQ(difference.readings.size(), 1U);
  EXPECT_EQ(difference.readings[0].b, 0.5);
}

TEST(RunDifference, LeavesOutPointsOfCurvesUnlessAllIsAsked) {
  auto a = bare_run(1, 0);
  auto b = bare_run(1, 0);
  for (int64_t i = 0; i < 3; ++i) {
    a.readings.push_back({.name = "singular_value", .value = 1, .index = i});
    b.readings.push_back({.name = "singular_value", .value = 2, .index = i + 1});
  }
  const auto few = run_difference(a, b);
  EXPECT_TRUE(few.readings.empty());
  EXPECT_EQ(few.only_in_a + few.only_in_b, 0);
  const auto all = run_difference(a, b, /*all=*/true);
  EXPECT_EQ(all.readings.size(), 2U);
  EXPECT_EQ(all.only_in_a, 1);
  EXPECT_EQ(all.only_in_b, 1);
}

TEST(DifferenceText, IsThreeTablesForPeople) {
  const auto text = difference_text(
      run_difference(run_with_rank(1, 0, 90), run_with_rank(10, 0, 40.5)), TableFormat::text);
  EXPECT_EQ(text,
            "Settings\n\n"
            "key                A    B\n"
            "-----------------  ---  ----\n"
            "train.temperature  1.0  10.0\n"
            "\n"
            "Metadata: no difference\n"
            "\n"
            "Readings\n\n"
            "name           split   A     B  difference\n"
            "-------------  -----  --  ----  ----------\n"
            "solution_rank  test   90  40.5       -49.5\n");
}

// The default rank, and one by another threshold.
Runs runs_with_variants(double default_b) {
  auto a = run_with_rank(1, 0, 90);
  auto b = run_with_rank(1, 0, default_b);
  a.readings.push_back(rank_reading(80.123456, 1e-2));
  b.readings.push_back(rank_reading(80.5, 1e-2));
  return {a, b};
}

TEST(DifferenceText, ShowsPeopleTheDefaultDefinitionUnlessAllAreAskedFor) {
  const auto runs = runs_with_variants(40);
  const auto difference = run_difference(runs[0], runs[1]);
  const auto brief = difference_text(difference, TableFormat::text);
  EXPECT_TRUE(
      brief.ends_with("name           split   A   B  difference\n"
                      "-------------  -----  --  --  ----------\n"
                      "solution_rank  test   90  40         -50\n"
                      "\n"
                      "Not shown: 1 reading by other definitions; --definitions shows them, "
                      "-o json has everything.\n"))
      << brief;
  const auto whole = difference_text(difference, TableFormat::text, /*with_definitions=*/true);
  EXPECT_TRUE(whole.ends_with(
      "name           split      A     B  difference  definition\n"
      "-------------  -----  -----  ----  ----------  ---------------------------------------\n"
      "solution_rank  test      90    40         -50  bias true, gamma 0.001, shift_free true\n"
      "solution_rank  test   80.12  80.5      0.3765  bias true, gamma 0.01, shift_free true\n"))
      << whole;
}

TEST(DifferenceText, PutsNoVariantInThePlaceOfAnEqualDefault) {
  const auto runs = runs_with_variants(90);
  const auto text = difference_text(run_difference(runs[0], runs[1]), TableFormat::text);
  EXPECT_NE(text.find("Readings: no difference by default definitions\n"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("80"), std::string::npos) << text;
}

TEST(DifferenceText, FitsTheWidth) {
  const auto runs = runs_with_variants(40);
  auto a = runs[0];
  a.readings.push_back(accuracy(0.5));
  const auto text = difference_text(run_difference(a, runs[1]), TableFormat::text,
                                    /*with_definitions=*/false, /*width=*/80);
  for (const auto& line : split(text, '\n')) EXPECT_LE(line.size(), 80U) << line;
}

TEST(DifferenceText, SaysToPeopleWhatIsNotCompared) {
  auto a = bare_run(1, 0);
  a.readings.push_back(accuracy(0.5));
  const auto difference = run_difference(a, bare_run(1, 0));
  const auto text = difference_text(difference, TableFormat::markdown);
  EXPECT_TRUE(text.ends_with("\n" + not_compared_text(difference) + "\n")) << text;
}

TEST(DifferenceText, TellsEqualReadingsFromNoneToCompare) {
  const auto last_line = [](const auto& a, const auto& b) {
    const auto text = difference_text(run_difference(a, b), TableFormat::text);
    const auto begin = text.find("Readings: ");
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  auto a = bare_run(1, 0);
  const auto none = bare_run(1, 0);
  a.readings = {accuracy(0.5)};
  auto b = bare_run(1, 0);
  b.readings = {accuracy(0.5, 200)};
  EXPECT_EQ(last_line(a, a), "Readings: no difference");
  EXPECT_EQ(last_line(a, b), "Readings: none in common");
  EXPECT_EQ(last_line(a, none), "Readings: none in common");
  EXPECT_EQ(last_line(none, none), "Readings: neither run has readings");
}

TEST(DifferenceText, IsOneTableOfExactNumbersForPrograms) {
  auto a = run_with_rank(1, 0, 0.1);
  auto b = run_with_rank(10, 0, 0.30000000000000004);
  b.metadata["commit"] = "abc";
  const auto difference = run_difference(a, b);
  EXPECT_EQ(difference_text(difference, TableFormat::csv),
            "kind,name,layer,split,detector,ood,index,A,B,difference,definition\n"
            "setting,train.temperature,,,,,,1.0,10.0,,\n"
            "metadata,commit,,,,,,,abc,,\n"
            "reading,solution_rank,,test,,,,0.1,0.30000000000000004,0.20000000000000004,"
            "\"{\"\"bias\"\":true,\"\"gamma\"\":0.001,\"\"shift_free\"\":true}\"\n");
  const auto rows = Json::parse(difference_text(difference, TableFormat::json));
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].at("B"), 10);
  EXPECT_EQ(rows[1].at("A"), nullptr);
  EXPECT_EQ(rows[2].at("B"), 0.30000000000000004);
}

}  // namespace kelvin::run_difference_test
