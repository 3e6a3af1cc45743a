#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/command.h"

namespace kelvin::info_test {

TEST(InfoVerb, TellsVersionsAndMachine) {
  const auto result = run_tool({"info", "-o", "json", "--threads", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto facts = nlohmann::json::parse(result.out);
  EXPECT_TRUE(facts.contains("version"));
  EXPECT_TRUE(facts.at("versions").contains("torch"));
  EXPECT_EQ(facts.at("versions").at("threads"), 1);
  EXPECT_GE(facts.at("machine").at("cores"), 1);
}

}  // namespace kelvin::info_test
