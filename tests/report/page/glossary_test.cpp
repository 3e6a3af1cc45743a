#include "kelvin/report/page/glossary.h"

#include <gtest/gtest.h>

#include <set>

namespace kelvin::glossary_test {

TEST(Glossary, KnowsEveryReadingOfTheVerb) {
  for (const char* name : {"nll", "brier", "ece", "ece_equal_mass", "ece_classwise", "mce",
                           "temperature", "accuracy"}) {
    EXPECT_FALSE(term(name).meaning.empty()) << name;
  }
  EXPECT_FALSE(term("ece").is_fraction);
}

TEST(Glossary, KnowsThatMismatchesAreShares) {
  EXPECT_TRUE(term("nc4_ncc_mismatch").is_fraction);
  EXPECT_FALSE(term("nc4_centre_logits").is_fraction);
}

TEST(Glossary, HasTermsOfEveryArea) {
  for (const char* name : {"solution_rank", "loss_spread", "attention_entropy", "kappa", "auroc",
                           "ece", "covariance_rank", "weight_rank", "nc1_trace_pinv", "orthodev"}) {
    EXPECT_FALSE(term(name).meaning.empty()) << name;
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
