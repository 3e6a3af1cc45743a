#include <gtest/gtest.h>

#include <algorithm>
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
  EXPECT_GT(facts.at("machine").at("memory_bytes"), 1 << 20);
}

TEST(InfoVerb, TellsPeopleOfMemoryInUnitsTheyRead) {
  const auto result = run_tool({"info", "--threads", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto line = result.out.substr(std::min(result.out.size(), result.out.find("\nmemory ")));
  EXPECT_NE(line.find("iB\n"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("memory_bytes"), std::string::npos) << result.out;
}

}  // namespace kelvin::info_test
