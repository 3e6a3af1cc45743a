#include "kelvin/report/tables/layer_table.h"

#include <gtest/gtest.h>

namespace kelvin::layer_table_test {

Reading rank(const std::string& layer, double value, const Definition& definition) {
  return {.name = "covariance_rank",
          .value = value,
          .layer = layer,
          .split = "test",
          .definition = definition};
}

TEST(LayerTable, HasARowPerLayerAndAColumnPerName) {
  const Readings readings = {
      rank("conv", 7, {{"gamma", 1e-3}, {"features", 9}, {"upper_bound", 9}}),
      rank("conv", 9, {{"gamma", 1e-4}, {"features", 9}, {"upper_bound", 9}}),
      rank("fc", 3, {{"gamma", 1e-3}, {"features", 3}, {"upper_bound", 3}}),
      {.name = "alignment", .value = 0.5, .layer = "fc", .definition = {{"k", 15}}},
      {.name = "accuracy", .value = 0.9, .definition = {{"samples", 1}}},
      {.name = "singular_value", .value = 1, .layer = "fc", .index = 0},
  };
  const auto tables = layer_tables(readings);
  ASSERT_EQ(tables.tables.size(), 1U);
  EXPECT_EQ(markdown_of(tables.tables[0]),
            "| layer | covariance_rank | alignment |\n"
            "| --- | ---: | ---: |\n"
            "| conv | 7 |  |\n"
            "| fc | 3† | 0.5 |\n\n"
            "† At its upper bound, which the number of samples, features or classes sets: it could "
            "not be higher.\n");
  EXPECT_EQ(tables.left_out, 1U);
  ASSERT_EQ(tables.rest.size(), 2U);
  EXPECT_EQ(tables.rest[0].name, "accuracy");
  ASSERT_EQ(tables.meanings.size(), 2U);
  EXPECT_EQ(tables.meanings[0], "covariance_rank: gamma 0.001");
}

TEST(LayerTable, SaysWhereARankIsNotReliable) {
  const auto tables = layer_tables({rank("conv", 64, {{"is_reliable", false}})});
  EXPECT_EQ(tables.tables.at(0).rows.at(0).at(1), "~ 64");
}

TEST(LayerTable, KeepsPopulationsApart) {
  const Readings readings = {
      {.name = "probe_accuracy", .value = 0.5, .layer = "fc", .split = "test"},
      {.name = "probe_accuracy", .value = 0.2, .layer = "fc", .split = "test", .ood = "svhn"}};
  const auto tables = layer_tables(readings);
  ASSERT_EQ(tables.tables.at(0).columns.size(), 3U);
  EXPECT_EQ(tables.tables[0].columns[2].name, "probe_accuracy svhn");
  EXPECT_EQ(tables.left_out, 0U);
}

TEST(LayerTable, SplitsManyColumnsOverTables) {
  Readings readings;
  for (int i = 0; i < 8; ++i) {
    readings.push_back({.name = "m" + std::to_string(i), .value = 1, .layer = "fc"});
  }
  const auto tables = layer_tables(readings);
  ASSERT_EQ(tables.tables.size(), 2U);
  EXPECT_EQ(tables.tables[1].columns.size(), 3U);
}

TEST(LayerTable, OfNothingIsNothing) {
  EXPECT_TRUE(layer_tables({}).tables.empty());
  EXPECT_TRUE(layer_tables({}).rest.empty());
}

}  // namespace kelvin::layer_table_test
