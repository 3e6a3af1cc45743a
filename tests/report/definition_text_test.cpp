#include "kelvin/report/definition_text.h"

#include <gtest/gtest.h>

namespace kelvin {
namespace {

TEST(DefinitionText, ListsKeysAndLeavesOutWhatIsToldElsewhere) {
  EXPECT_EQ(definition_text({{"gamma", 0.001}, {"matrix", "logits"}}, {"matrix"}), "gamma 0.001");
  EXPECT_EQ(definition_text({{"bias", true}, {"gamma", 0.001}}), "bias true, gamma 0.001");
  EXPECT_EQ(definition_text(Definition::object()), "");
}

}  // namespace
}  // namespace kelvin
