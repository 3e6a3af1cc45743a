#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kelvin/runs/run_folder.h"
#include "tests/support/command.h"
#include "tests/support/fake_run.h"

namespace kelvin::compare_test {

class CompareVerb : public testing::Test {
 protected:
  CompareVerb() {
    write_fake_run(a_, 1, 0, 90);
    write_fake_run(b_, 100, 0, 40);
    RunFolder::open(b_).add_readings({{.name = "kappa", .value = 3}});
  }

  TemporaryFolder folder_;
  std::string a_ = folder_ / "a";
  std::string b_ = folder_ / "b";
};

TEST_F(CompareVerb, ShowsHowTwoRunsDiffer) {
  const auto result = run_tool({"compare", a_, b_});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(result.out.starts_with("A: " + a_ + "\n\nB: " + b_ + "\n\nSettings\n")) << result.out;
  EXPECT_NE(result.out.find("train.temperature"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(" -50\n"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("gamma"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("accuracy"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("0 readings of A and 1 of B are not compared"), std::string::npos)
      << result.out;
  EXPECT_EQ(result.err, "");
}

TEST_F(CompareVerb, ShowsAllIfAsked) {
  const auto result = run_tool({"compare", a_, b_, "--all"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("accuracy"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("model.name"), std::string::npos) << result.out;
}

TEST_F(CompareVerb, ShowsDefinitionsIfAsked) {
  const auto result = run_tool({"compare", a_, b_, "--definitions"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("gamma 0.001"), std::string::npos) << result.out;
}

TEST_F(CompareVerb, PrintsRowsForPrograms) {
  const auto result = run_tool({"compare", a_, b_, "-o", "json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto rows = nlohmann::json::parse(result.out);
  ASSERT_EQ(rows.size(), 2U) << result.out;
  EXPECT_EQ(rows[0].at("name"), "train.temperature");
  EXPECT_EQ(rows[0].at("B"), 100);
  EXPECT_EQ(rows[1].at("name"), "solution_rank");
  EXPECT_EQ(rows[1].at("difference"), -50);
  EXPECT_NE(result.err.find("0 readings of A and 1 of B are not compared"), std::string::npos)
      << result.err;
}

TEST_F(CompareVerb, FindsNoDifferenceOfARunToItself) {
  const auto result = run_tool({"compare", a_, a_, "-o", "csv"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "kind,name,layer,split,detector,ood,index,A,B,difference,definition\n");
}

TEST_F(CompareVerb, NeedsExactlyTwoRuns) {
  const auto refused = [](const std::vector<std::string>& arguments) {
    const auto result = run_tool(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    return result.err;
  };
  EXPECT_EQ(refused({"compare", a_, folder_ / "no"}),
            "kelvin compare: " + (folder_ / "no") + ": no such folder\n");
  EXPECT_EQ(
      refused({"compare", folder_.path().string(), b_}),
      "kelvin compare: " + folder_.path().string() + ": is not a run folder (no config.toml)\n");
  EXPECT_EQ(refused({"compare", a_, b_, a_}), "kelvin compare: unexpected argument '" + a_ + "'\n");
  EXPECT_EQ(refused({"compare", a_}), "kelvin compare: B is required\n");
}

}  // namespace kelvin::compare_test
