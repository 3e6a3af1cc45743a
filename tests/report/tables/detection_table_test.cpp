#include "kelvin/report/tables/detection_table.h"

#include <gtest/gtest.h>

namespace kelvin::detection_table_test {

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

Reading reading_of(const std::string& name, double value, const std::string& detector,
                   const std::string& ood) {
  return {.name = name, .value = value, .split = "test", .detector = detector, .ood = ood};
}

Reading mean_of(const std::string& group, double value, const std::vector<std::string>& members) {
  auto mean = reading_of("auroc", value, "msp", group);
  mean.definition["mean_over"] = members;
  return mean;
}

TEST(DetectionTables, HaveARowPerDetectorTheBestFirst) {
  auto with_interval = reading_of("auroc", 0.9, "neco", "svhn");
  with_interval.interval = Interval{.low = 0.89, .high = 0.911};
  const auto found = detection_tables({reading_of("auroc", 0.8, "msp", "svhn"),
                                       reading_of("fpr95_id", 0.5, "msp", "svhn"), with_interval,
                                       reading_of("fpr95_ood", 0.25, "neco", "svhn")});
  ASSERT_EQ(found.tables.size(), 1U);
  const auto& table = found.tables[0];
  EXPECT_EQ(table.title, "Against svhn, in %");
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0],
            (std::vector<std::string>{"neco", "90.00 (89.00 to 91.10)", "", "", "", "25.00"}));
  EXPECT_EQ(table.rows[1], (std::vector<std::string>{"msp", "80.00", "", "", "50.00", ""}));
}

TEST(DetectionTables, InNarrowPlacesHaveTheIntervalOfTheAurocAlone) {
  auto auroc = reading_of("auroc", 0.9, "neco", "svhn");
  auto fpr = reading_of("fpr95_id", 0.25, "neco", "svhn");
  auroc.interval = fpr.interval = Interval{.low = 0.2, .high = 0.911};
  const auto found = detection_tables({auroc, fpr}, ShownIntervals::auroc);
  EXPECT_EQ(found.tables.at(0).rows.at(0),
            (std::vector<std::string>{"neco", "90.00 (20.0 to 91.1)", "", "", "25.00", ""}));
}

TEST(DetectionTables, NameTheConventionInEveryHeader) {
  const auto found = detection_tables({reading_of("auroc", 0.8, "msp", "svhn")});
  std::vector<std::string> headers;
  for (const auto& column : found.tables.at(0).columns) headers.push_back(column.name);
  EXPECT_EQ(headers, (std::vector<std::string>{"detector", "AUROC", "AUPR (ID positive)",
                                               "AUPR (OOD positive)", "FPR95 (ID positive)",
                                               "FPR95 (OOD positive)"}));
}

TEST(DetectionTables, AreOnePerOodDatasetAndLeaveTheRest) {
  const auto found = detection_tables({reading_of("auroc", 0.8, "msp", "svhn"),
                                       {.name = "orthodev", .value = 0.3, .ood = "svhn"},
                                       reading_of("auroc", 0.7, "msp", "cifar100"),
                                       mean_of("near", 0.75, {"svhn", "cifar100"})});
  ASSERT_EQ(found.tables.size(), 3U);
  EXPECT_EQ(found.tables[0].title, "Against svhn, in %");
  EXPECT_EQ(found.tables[1].title, "Against cifar100, in %");
  EXPECT_EQ(found.tables[2].title, "Against near (mean over svhn, cifar100), in %");
  ASSERT_EQ(found.rest.size(), 1U);
  EXPECT_EQ(found.rest[0].name, "orthodev");
}

TEST(DetectionTables, DoNotRepeatTheOnlyMemberOfAGroup) {
  const auto found = detection_tables({reading_of("auroc", 0.8, "msp", "svhn"),
                                       reading_of("auroc", 0.7, "msp", "cifar100"),
                                       mean_of("near", 0.7, {"cifar100"})});
  ASSERT_EQ(found.tables.size(), 2U);
  EXPECT_EQ(found.tables[0].title, "Against svhn, in %");
  EXPECT_EQ(found.tables[1].title, "Against cifar100 (all of near), in %");
  EXPECT_TRUE(found.rest.empty());
}

TEST(DetectionTables, OfNoDetectorsAreNone) {
  EXPECT_TRUE(detection_tables({{.name = "accuracy", .value = 1}}).tables.empty());
}

}  // namespace kelvin::detection_table_test
