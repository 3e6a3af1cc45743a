#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/command.h"

namespace kelvin::list_test {

TEST(ListVerb, AnswersInUnderASecond) {
  for (const char* kind :
       {"models", "datasets", "measures", "detectors", "softmaxes", "losses", "recipes"}) {
    const auto result = run_tool({"list", kind});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_LT(result.seconds, 1) << kind;
  }
}

TEST(ListVerb, GivesEachEntryALineAndAReference) {
  for (const char* kind : {"models", "datasets", "measures", "detectors", "softmaxes", "losses"}) {
    const auto result = run_tool({"list", kind, "-o", "json"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto entries = nlohmann::json::parse(result.out);
    EXPECT_FALSE(entries.empty()) << kind;
    for (const auto& entry : entries) {
      EXPECT_TRUE(entry.at("name").is_string()) << kind;
      EXPECT_TRUE(entry.at("summary").is_string()) << kind << ": " << entry.at("name");
      EXPECT_TRUE(entry.contains("reference")) << kind << ": " << entry.at("name");
    }
  }
}

TEST(ListVerb, NamesItsKindsIfNoneIsAskedFor) {
  const auto result = run_tool({"list", "-o", "json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto kinds = nlohmann::json::parse(result.out);
  EXPECT_EQ(kinds.size(), 7U);
  for (const auto& kind : kinds) {
    EXPECT_EQ(run_tool({"list", kind.at("kind")}).exit_code, 0) << kind;
  }
}

TEST(ListVerb, KnowsTheDemoAmongTheRecipes) {
  const auto result = run_tool({"list", "recipes", "-o", "csv"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("\ndemo,"), std::string::npos) << result.out;
}

TEST(ListVerb, KnowsTheLosses) {
  const auto result = run_tool({"list", "losses", "-o", "csv"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* name : {"cross_entropy", "focal", "logit_norm", "mse"}) {
    EXPECT_NE(result.out.find("\n" + std::string(name) + ","), std::string::npos) << result.out;
  }
}

TEST(ListVerb, SaysWhichSoftmaxesAreDistributions) {
  const auto result = run_tool({"list", "softmaxes", "-o", "json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::string others;
  for (const auto& entry : nlohmann::json::parse(result.out)) {
    if (entry.at("sums_to_one") == "no") others += entry.at("name").get<std::string>() + " ";
  }
  EXPECT_EQ(others, "sigmoid softmax_off_by_one stick_breaking ");
}

TEST(ListVerb, SaysForWhichInputsTheSizesOfModelsAre) {
  const auto result = run_tool({"list", "models"}, {"COLUMNS=200"});
  EXPECT_NE(result.out.find("(macs) are those for one image of 3 x 32 x 32 and 10 classes"),
            std::string::npos)
      << result.out;
}

TEST(ListVerb, DoesNotLoadLibTorch) {
  const auto result = run_tool({"list", "models"}, {"LD_DEBUG=libs"});
  EXPECT_NE(result.err.find("libkelvin_base"), std::string::npos);
  EXPECT_EQ(result.err.find("libtorch"), std::string::npos);
}

}  // namespace kelvin::list_test
