#include "kelvin/experiment/evaluate/ood_groups.h"

#include <gtest/gtest.h>

namespace kelvin::ood_groups_test {

Reading reading_of(const std::string& detector, const std::string& ood, double value,
                   const std::string& name = "auroc") {
  return {.name = name,
          .value = value,
          .split = "test",
          .detector = detector,
          .ood = ood,
          .interval = Interval{.low = 0, .high = 1},
          .definition = {{"score", detector}, {"ood_samples", 7}, {"interval", "DeLong"}}};
}

TEST(GroupMeans, AreThoseOfEachDetectorOverTheMembersThatWereMeasured) {
  const auto means = group_means(
      {reading_of("msp", "a", 0.5), reading_of("neco", "a", 0.6), reading_of("msp", "b", 0.7),
       reading_of("neco", "b", 1.0), reading_of("msp", "c", 0.1), reading_of("neco", "c", 0.1)},
      {.near = {"a", "b", "not measured"}, .far = {}});
  ASSERT_EQ(means.size(), 2U);
  EXPECT_EQ(means[0].detector, "msp");
  EXPECT_EQ(means[0].ood, "near");
  EXPECT_EQ(means[0].split, "test");
  EXPECT_DOUBLE_EQ(means[0].value, 0.6);
  EXPECT_FALSE(means[0].interval);
  EXPECT_EQ(means[0].definition, (Definition{{"score", "msp"}, {"mean_over", {"a", "b"}}}));
  EXPECT_EQ(means[1].detector, "neco");
  EXPECT_DOUBLE_EQ(means[1].value, 0.8);
}

TEST(GroupMeans, KeepNumbersApart) {
  const auto means =
      group_means({reading_of("msp", "a", 0.5), reading_of("msp", "a", 0.9, "fpr95_id"),
                   reading_of("msp", "b", 0.7), reading_of("msp", "b", 0.1, "fpr95_id")},
                  {.near = {}, .far = {"a", "b"}});
  ASSERT_EQ(means.size(), 2U);
  EXPECT_EQ(means[0].ood, "far");
  EXPECT_DOUBLE_EQ(means[0].value, 0.6);
  EXPECT_EQ(means[1].name, "fpr95_id");
  EXPECT_DOUBLE_EQ(means[1].value, 0.5);
}

TEST(GroupMeans, OfASingleMemberAreItsNumbers) {
  const auto means = group_means({reading_of("msp", "a", 0.5), reading_of("msp", "c", 0.25)},
                                 {.near = {"a", "not measured"}, .far = {"c"}});
  ASSERT_EQ(means.size(), 2U);
  EXPECT_EQ(means[0].ood, "near");
  EXPECT_EQ(means[0].value, 0.5);
  EXPECT_FALSE(means[0].interval);
  EXPECT_EQ(means[0].definition, (Definition{{"score", "msp"}, {"mean_over", {"a"}}}));
  EXPECT_EQ(means[1].ood, "far");
  EXPECT_EQ(means[1].value, 0.25);
}

TEST(GroupMeans, OfNoMemberAreNone) {
  EXPECT_TRUE(group_means({reading_of("msp", "a", 0.5)}, {.near = {"b"}, .far = {}}).empty());
}

TEST(GroupMeans, LeaveOutWhatIsNotOfADetector) {
  EXPECT_TRUE(group_means({reading_of("", "a", 0.5, "rho"), reading_of("", "b", 0.5, "rho")},
                          {.near = {"a", "b"}, .far = {}})
                  .empty());
}

TEST(KnownGroups, AreThoseOfCifar) {
  EXPECT_EQ(known_groups("cifar10").near, std::vector<std::string>{"cifar100"});
  EXPECT_EQ(known_groups("cifar100").near, std::vector<std::string>{"cifar10"});
  EXPECT_EQ(known_groups("cifar100").far, (std::vector<std::string>{"mnist", "svhn"}));
  EXPECT_TRUE(known_groups("glyphs10").near.empty());
}

}  // namespace kelvin::ood_groups_test
