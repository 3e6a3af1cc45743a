#include "kelvin/report/calibration_glossary.h"

#include <gtest/gtest.h>

namespace kelvin {
namespace {

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

}  // namespace
}  // namespace kelvin
