#include "kelvin/report/glossary.h"

#include <gtest/gtest.h>

#include <set>

namespace kelvin {
namespace {

TEST(Glossary, ExplainsEveryNameOnce) {
  std::set<std::string> names;
  for (const auto& entry : glossary()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_TRUE(entry.meaning.ends_with(".")) << entry.name;
    EXPECT_FALSE(entry.label.empty()) << entry.name;
  }
}

TEST(Glossary, KnowsWhatIsAFraction) {
  EXPECT_TRUE(term("kappa").is_fraction);
  EXPECT_FALSE(term("solution_rank").is_fraction);
}

TEST(Glossary, LabelsAnUnknownNameByItself) {
  EXPECT_EQ(term("someones_own").label, "someones_own");
  EXPECT_EQ(term("someones_own").meaning, "");
}

}  // namespace
}  // namespace kelvin
