#include "kelvin/core/registry.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/errors.h"

namespace kelvin::registry_test {

Registry<int> animals() {
  Registry<int> registry("animal");
  registry.add("zebra", 3);
  registry.add("horse", 1);
  registry.add("donkey", 2);
  return registry;
}

TEST(Registry, FindsWhatWasAdded) { EXPECT_EQ(animals().find("donkey"), 2); }

TEST(Registry, ListsNamesInOrderWhateverTheOrderOfAdding) {
  EXPECT_EQ(animals().names(), (std::vector<std::string>{"donkey", "horse", "zebra"}));
  EXPECT_EQ(animals().entries().size(), 3U);
}

TEST(Registry, AddReturnsTrueSoThatAConstantCanCallIt) {
  Registry<int> registry("animal");
  const bool registered = registry.add("horse", 1);
  EXPECT_TRUE(registered);
}

TEST(Registry, RefusesTheSameNameTwiceAndKeepsTheFirst) {
  auto registry = animals();
  EXPECT_EQ(error_of([&] { registry.add("horse", 9); }), "animal 'horse' is registered twice");
  EXPECT_EQ(registry.find("horse"), 1);
}

TEST(Registry, SuggestsTheNearestNameAndListsAll) {
  EXPECT_EQ(error_of([] { animals().find("hores"); }),
            "no animal named 'hores'; did you mean 'horse'? There are: donkey, horse, zebra");
}

TEST(Registry, ListsAllNamesWhenNoneIsNear) {
  EXPECT_EQ(error_of([] { animals().find("temperature"); }),
            "no animal named 'temperature'. There are: donkey, horse, zebra");
}

TEST(Registry, IsEmptyAtFirst) {
  const Registry<int> registry("animal");
  EXPECT_TRUE(registry.names().empty());
  EXPECT_EQ(error_of([&] { registry.find("x"); }), "no animal named 'x'. There are: ");
}

}  // namespace kelvin::registry_test
