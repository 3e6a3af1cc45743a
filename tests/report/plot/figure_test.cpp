#include "kelvin/report/plot/figure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

namespace kelvin::figure_test {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool has_bad_number(const std::string& svg) {
  return svg.find("\"nan") != std::string::npos || svg.find("inf") != std::string::npos ||
         svg.find(",nan") != std::string::npos || svg.find("-nan") != std::string::npos;
}

LineFigure with_points(std::vector<PlotPoint> points) {
  return {.title = "t", .series = {{.label = "s", .points = std::move(points)}}};
}

TEST(Figure, NamesAndDescribesItselfToThoseWhoCannotSeeIt) {
  auto figure = with_points({{.x = 0, .y = 1}, {.x = 1, .y = 2}});
  figure.title = "Rank";
  figure.description = "falls";
  const auto svg = svg_of(figure);
  EXPECT_NE(svg.find("role=\"img\""), std::string::npos);
  EXPECT_NE(svg.find("<title>Rank</title>"), std::string::npos);
  EXPECT_NE(svg.find("<desc>falls</desc>"), std::string::npos);
}

TEST(Figure, WithoutDataSaysSo) {
  EXPECT_NE(svg_of(LineFigure{}).find("no data"), std::string::npos);
  EXPECT_NE(svg_of(with_points({{.x = NAN, .y = NAN}})).find("no data"), std::string::npos);
  EXPECT_NE(svg_of(HistogramFigure{}).find("no data"), std::string::npos);
}

TEST(Figure, SurvivesExtremeValues) {
  const double largest = std::numeric_limits<double>::max();
  const double smallest = std::numeric_limits<double>::denorm_min();
  for (const bool is_log : {false, true}) {
    auto figure = with_points({{.x = smallest, .y = smallest}, {.x = largest, .y = largest}});
    figure.series[0].points.push_back({.x = -largest, .y = -largest});
    figure.x.is_log = is_log;
    figure.y.is_log = is_log;
    EXPECT_FALSE(has_bad_number(svg_of(figure))) << is_log;
  }
  EXPECT_FALSE(has_bad_number(svg_of(HistogramFigure{
      .populations = {{.label = "a", .values = {-largest, largest, NAN, kInfinity}}}})));
}

TEST(Figure, EscapesItsTexts) {
  auto figure = with_points({{.x = 0, .y = 1}});
  figure.title = "<script>";
  figure.series[0].label = "<b>";
  figure.x = {.label = "<x>", .names = {"<layer>"}};
  figure.guides = {{.value = 1, .label = "<g>"}};
  figure.marks = {{.x = 0, .y = 1, .label = "<m>"}};
  const auto svg = svg_of(figure);
  for (const char* tag : {"<script", "<b>", "<x>", "<layer>", "<g>", "<m>"}) {
    EXPECT_EQ(svg.find(tag), std::string::npos) << tag;
  }
}

TEST(Histogram, SharesOutEachPopulationOverCommonBins) {
  const HistogramFigure figure{
      .populations = {{.label = "a", .values = {0, 0, 1, 4}}, {.label = "b", .values = {4, 4}}},
      .bins = 4};
  const auto bins = bins_of(figure);
  ASSERT_EQ(bins.size(), 4);
  EXPECT_EQ(bins[0].fractions, (std::vector<double>{0.5, 0}));
  EXPECT_EQ(bins[1].fractions, (std::vector<double>{0.25, 0}));
  EXPECT_EQ(bins[3].fractions, (std::vector<double>{0.25, 1}));
}

TEST(Histogram, OfOneValueHasABinAroundIt) {
  const auto bins = bins_of({.populations = {{.label = "a", .values = {3, 3}}}, .bins = 3});
  EXPECT_EQ(bins[1].fractions[0], 1);
}

}  // namespace kelvin::figure_test
