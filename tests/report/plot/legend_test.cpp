#include "kelvin/report/plot/legend.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace kelvin::legend_test {

LineFigure with_points(std::vector<PlotPoint> points) {
  return {.title = "t", .series = {{.label = "s", .points = std::move(points)}}};
}

TEST(EndLabels, LabelsFewLinesAtTheirEndsAndManyInALegend) {
  auto figure = with_points({{.x = 0, .y = 1}, {.x = 1, .y = 2}});
  EXPECT_NE(svg_of(figure).find("key ink"), std::string::npos);
  for (int64_t i = 0; i < 8; ++i) figure.series.push_back(figure.series[0]);
  EXPECT_EQ(svg_of(figure).find("key ink"), std::string::npos);
}

TEST(EndLabels, AreNotGivenToPointsWithoutALine) {
  auto figure = with_points({{.x = 0, .y = 1}, {.x = 1, .y = 2}});
  figure.series[0].stroke = Stroke::points_alone;
  EXPECT_EQ(svg_of(figure).find("key ink"), std::string::npos);
}

TEST(Legend, TakesAsManyRowsAsItNeeds) {
  EXPECT_EQ(legend({}).height, 0);
  const auto one = legend({{.label = "a"}, {.label = "b"}});
  const auto many = legend(std::vector<LegendEntry>(12, {.label = "temperature 100"}));
  EXPECT_GT(one.height, 0);
  EXPECT_GE(many.height, 3 * one.height);
}

TEST(Legend, EscapesLabels) {
  EXPECT_EQ(legend({{.label = "<b>"}}).svg.find("<b>"), std::string::npos);
}

}  // namespace kelvin::legend_test
