#include "kelvin/report/reading_places.h"

#include <gtest/gtest.h>

namespace kelvin {
namespace {

std::vector<std::string> names_of(const std::vector<PlaceColumn>& places) {
  std::vector<std::string> names;
  for (const auto& place : places) names.emplace_back(place.name);
  return names;
}

TEST(ReadingPlaces, AreThoseThatSomeReadingHas) {
  const Readings readings = {{.name = "auroc", .split = "test", .ood = "svhn"},
                             {.name = "singular_value", .split = "test", .index = 0}};
  EXPECT_EQ(names_of(used_places(readings)), (std::vector<std::string>{"split", "ood", "index"}));
  EXPECT_TRUE(used_places({}).empty());
}

TEST(ReadingPlaces, ShowWhatTheReadingSays) {
  const Reading reading{
      .name = "x", .layer = "a", .split = "b", .detector = "c", .ood = "d", .index = 7};
  std::string text;
  for (const auto& place : all_places()) text += place.cell(reading);
  EXPECT_EQ(text, "abcd7");
}

}  // namespace
}  // namespace kelvin
