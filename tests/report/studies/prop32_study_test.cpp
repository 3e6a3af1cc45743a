#include <gtest/gtest.h>

#include "kelvin/report/studies/study.h"

namespace kelvin::prop32_study_test {

TEST(Prop32Study, HasARowForEachCircle) {
  const Definition with = {{"classes", 10}, {"probability", 0.9}};
  const auto study =
      prop32_study({{.name = "circle_scale", .value = 15, .definition = with},
                    {.name = "solution_rank", .value = 2, .definition = with},
                    {.name = "accuracy", .value = 1, .definition = with},
                    {.name = "smallest_true_probability", .value = 0.9, .definition = with}});
  EXPECT_EQ(study.tables.at(0).rows.at(0),
            (std::vector<std::string>{"10", "0.9", "15", "0.15", "2", "100.0 %", "0.9"}));
}

TEST(Prop32Study, SaysWhetherARunIsASolutionOfRankTwo) {
  const Definition with = {{"model", "mlp"}, {"samples", 50}, {"dataset", "glyphs10"}};
  Readings readings = {{.name = "accuracy", .value = 1, .definition = with},
                       {.name = "solution_rank", .value = 2, .definition = with},
                       {.name = "smallest_true_probability", .value = 0.6, .definition = with},
                       {.name = "samples_below_half", .value = 0, .definition = with}};
  EXPECT_TRUE(prop32_study(readings).findings.at(0).ends_with(
      "This is a solution of rank 2 as the proposition has it."));
  readings[1].value = 3;
  EXPECT_TRUE(prop32_study(readings).findings.at(0).ends_with("This is no solution of rank 2."));
}

}  // namespace kelvin::prop32_study_test
