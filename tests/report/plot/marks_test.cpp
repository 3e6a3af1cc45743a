#include "kelvin/report/plot/marks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

namespace kelvin::marks_test {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

bool has_bad_number(const std::string& svg) {
  return svg.find("\"nan") != std::string::npos || svg.find("inf") != std::string::npos ||
         svg.find(",nan") != std::string::npos || svg.find("-nan") != std::string::npos;
}

LineFigure with_points(std::vector<PlotPoint> points) {
  return {.title = "t", .series = {{.label = "s", .points = std::move(points)}}};
}

TEST(Marks, BreaksTheLineWhereAValueIsNotFinite) {
  const auto svg = svg_of(with_points({{.x = 0, .y = 1},
                                       {.x = 1, .y = 2},
                                       {.x = 2, .y = NAN},
                                       {.x = 3, .y = 1},
                                       {.x = 4, .y = kInfinity},
                                       {.x = NAN, .y = 1}}));
  EXPECT_EQ(count_of(svg, "<polyline"), 2);
  EXPECT_FALSE(has_bad_number(svg));
}

TEST(Marks, LeavesOutWhatALogAxisCannotShow) {
  auto figure = with_points({{.x = 1, .y = 0}, {.x = 2, .y = -1}, {.x = 3, .y = 5}});
  figure.y.is_log = true;
  const auto svg = svg_of(figure);
  EXPECT_EQ(count_of(svg, "<circle"), 1);
  EXPECT_FALSE(has_bad_number(svg));
}

TEST(Marks, ShowsABandOnlyWhereSeedsDiffer) {
  const PlotPoint same{.x = 0, .y = 1, .low = 1, .high = 1};
  EXPECT_EQ(
      count_of(svg_of(with_points({same, {.x = 1, .y = 1, .low = 1, .high = 1}})), "<polygon"), 0);
  EXPECT_EQ(
      count_of(svg_of(with_points({same, {.x = 1, .y = 1, .low = 0, .high = 2}})), "<polygon"), 1);
}

TEST(Marks, GivesEveryPointAReadout) {
  const auto svg = svg_of(with_points({{.x = 0, .y = 0.25}, {.x = 1, .y = 0.5}}));
  EXPECT_NE(svg.find("0.25</title></circle>"), std::string::npos);
}

TEST(Marks, ShowsPointsThatStandAloneWithoutALine) {
  auto figure = with_points({{.x = 0, .y = 0.25, .name = "seed 7"}, {.x = 1, .y = 0.5}});
  figure.series[0].stroke = Stroke::points_alone;
  const auto svg = svg_of(figure);
  EXPECT_EQ(count_of(svg, "<polyline"), 0);
  // Two points and the key, all of them to be seen without a pointer over them.
  EXPECT_EQ(count_of(svg, "<circle"), 3);
  EXPECT_EQ(count_of(svg, "class=\"single\""), 2);
  EXPECT_NE(svg.find("seed 7\n"), std::string::npos);
  figure.series[0].points.assign(1000, {.x = 1, .y = 1});
  EXPECT_EQ(count_of(svg_of(figure), "<circle"), 1001);  // each of them is a result
}

TEST(Histogram, ShowsEveryPopulation) {
  const auto svg = svg_of(HistogramFigure{
      .populations = {{.label = "id", .values = {1, 2}}, {.label = "ood", .values = {2, 3}}}});
  EXPECT_EQ(count_of(svg, "<polygon"), 2);
}

}  // namespace kelvin::marks_test
