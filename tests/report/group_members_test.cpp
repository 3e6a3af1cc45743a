#include "kelvin/report/group_members.h"

#include <gtest/gtest.h>

namespace kelvin {
namespace {

Reading auroc_of(const std::string& ood, const Definition& definition) {
  return {.name = "auroc", .detector = "msp", .ood = ood, .definition = definition};
}

TEST(GroupMembers, AreThoseOfTheDefinition) {
  const auto far = auroc_of("far", {{"mean_over", {"mnist", "svhn"}}});
  EXPECT_EQ(group_members(far), (std::vector<std::string>{"mnist", "svhn"}));
  EXPECT_FALSE(is_of_one_member(far));
  EXPECT_TRUE(is_of_one_member(auroc_of("near", {{"mean_over", {"cifar100"}}})));
}

TEST(GroupMembers, OfADatasetAreNone) {
  EXPECT_TRUE(group_members(auroc_of("svhn", {{"score", "msp"}})).empty());
  EXPECT_FALSE(is_of_one_member(auroc_of("svhn", {{"score", "msp"}})));
}

// Other readings are means over layers or classes.
TEST(GroupMembers, OfWhatIsNotOfADetectorAreNone) {
  const Reading mean{.name = "alignment", .definition = {{"mean_over", "layers"}}};
  EXPECT_TRUE(group_members(mean).empty());
}

}  // namespace
}  // namespace kelvin
