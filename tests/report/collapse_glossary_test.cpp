#include "kelvin/report/collapse_glossary.h"

#include <gtest/gtest.h>

namespace kelvin {
namespace {

TEST(CollapseGlossary, IsPartOfTheGlossary) {
  ASSERT_FALSE(collapse_glossary().empty());
  for (const auto& each : collapse_glossary()) {
    EXPECT_EQ(term(each.name).meaning, each.meaning) << each.name;
  }
}

TEST(CollapseGlossary, KnowsThatMismatchesAreShares) {
  EXPECT_TRUE(term("nc4_ncc_mismatch").is_fraction);
  EXPECT_FALSE(term("nc4_centre_logits").is_fraction);
}

}  // namespace
}  // namespace kelvin
