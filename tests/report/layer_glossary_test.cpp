#include "kelvin/report/layer_glossary.h"

#include <gtest/gtest.h>

namespace kelvin {
namespace {

TEST(LayerGlossary, IsPartOfTheGlossary) {
  ASSERT_FALSE(layer_glossary().empty());
  for (const auto& each : layer_glossary()) {
    EXPECT_EQ(term(each.name).meaning, each.meaning) << each.name;
  }
}

}  // namespace
}  // namespace kelvin
