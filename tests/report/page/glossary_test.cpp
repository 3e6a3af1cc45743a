#include "kelvin/report/page/glossary.h"

#include <gtest/gtest.h>

#include <set>

namespace kelvin::glossary_test {

TEST(CalibrationGlossary, IsPartOfTheGlossary) {
  ASSERT_FALSE(calibration_glossary().empty());
  for (const auto& each : calibration_glossary()) {
    EXPECT_EQ(term(each.name).meaning, each.meaning) << each.name;
  }
}

TEST(CalibrationGlossary, KnowsEveryReadingOfTheVerb) {
  for (const char* name : {"nll", "brier", "ece", "ece_equal_mass", "ece_classwise", "mce",
                           "temperature", "accuracy"}) {
    EXPECT_FALSE(term(name).meaning.empty()) << name;
  }
  EXPECT_FALSE(term("ece").is_fraction);
}

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

TEST(LayerGlossary, IsPartOfTheGlossary) {
  ASSERT_FALSE(layer_glossary().empty());
  for (const auto& each : layer_glossary()) {
    EXPECT_EQ(term(each.name).meaning, each.meaning) << each.name;
  }
}

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

}  // namespace kelvin::glossary_test
