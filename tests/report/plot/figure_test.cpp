#include "kelvin/report/plot/figure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kelvin::figure_test {

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

TEST(LinearTicks, AreRoundAndInside) {
  EXPECT_EQ(linear_ticks(0, 1, 5), (std::vector<double>{0, 0.2, 0.4, 0.6, 0.8, 1}));
  EXPECT_EQ(linear_ticks(-3, 22, 5), (std::vector<double>{0, 5, 10, 15, 20}));
  EXPECT_TRUE(linear_ticks(1, 1, 5).empty());
  EXPECT_TRUE(linear_ticks(0, kInfinity, 5).empty());
}

TEST(LogTicks, ArePowersOfTenOrFinerOnAShortRange) {
  EXPECT_EQ(log_ticks(1e-3, 10, 5), (std::vector<double>{1e-3, 1e-2, 1e-1, 1, 10}));
  EXPECT_EQ(log_ticks(1, 10, 5), (std::vector<double>{1, 2, 5, 10}));
  EXPECT_LE(log_ticks(1e-30, 1e30, 5).size(), 8);
  EXPECT_TRUE(log_ticks(0, 10, 5).empty());
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

TEST(Figure, BreaksTheLineWhereAValueIsNotFinite) {
  const auto svg = svg_of(with_points({{.x = 0, .y = 1},
                                       {.x = 1, .y = 2},
                                       {.x = 2, .y = NAN},
                                       {.x = 3, .y = 1},
                                       {.x = 4, .y = kInfinity},
                                       {.x = NAN, .y = 1}}));
  EXPECT_EQ(count_of(svg, "<polyline"), 2);
  EXPECT_FALSE(has_bad_number(svg));
}

TEST(Figure, LeavesOutWhatALogAxisCannotShow) {
  auto figure = with_points({{.x = 1, .y = 0}, {.x = 2, .y = -1}, {.x = 3, .y = 5}});
  figure.y.is_log = true;
  const auto svg = svg_of(figure);
  EXPECT_EQ(count_of(svg, "<circle"), 1);
  EXPECT_FALSE(has_bad_number(svg));
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

TEST(Figure, ShowsABandOnlyWhereSeedsDiffer) {
  const PlotPoint same{.x = 0, .y = 1, .low = 1, .high = 1};
  EXPECT_EQ(
      count_of(svg_of(with_points({same, {.x = 1, .y = 1, .low = 1, .high = 1}})), "<polygon"), 0);
  EXPECT_EQ(
      count_of(svg_of(with_points({same, {.x = 1, .y = 1, .low = 0, .high = 2}})), "<polygon"), 1);
}

TEST(Figure, LabelsFewLinesAtTheirEndsAndManyInALegend) {
  auto figure = with_points({{.x = 0, .y = 1}, {.x = 1, .y = 2}});
  EXPECT_NE(svg_of(figure).find("key ink"), std::string::npos);
  for (int64_t i = 0; i < 8; ++i) figure.series.push_back(figure.series[0]);
  EXPECT_EQ(svg_of(figure).find("key ink"), std::string::npos);
}

TEST(Figure, GivesEveryPointAReadout) {
  const auto svg = svg_of(with_points({{.x = 0, .y = 0.25}, {.x = 1, .y = 0.5}}));
  EXPECT_NE(svg.find("0.25</title></circle>"), std::string::npos);
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

TEST(Histogram, ShowsEveryPopulation) {
  const auto svg = svg_of(HistogramFigure{
      .populations = {{.label = "id", .values = {1, 2}}, {.label = "ood", .values = {2, 3}}}});
  EXPECT_EQ(count_of(svg, "<polygon"), 2);
}

TEST(PaletteColour, IsDistinctForUpToSixGroupsFromColdToWarm) {
  EXPECT_EQ(palette_colour(0, 2), 0);
  EXPECT_EQ(palette_colour(1, 2), 5);
  for (size_t count = 2; count <= 6; ++count) {
    for (size_t i = 1; i < count; ++i) {
      EXPECT_LT(palette_colour(i - 1, count), palette_colour(i, count));
    }
  }
}

TEST(StandaloneSvg, BringsItsStyle) {
  const auto svg = standalone_svg(svg_of(with_points({{.x = 0, .y = 1}})));
  EXPECT_LT(svg.find("<svg"), svg.find("<style>"));
  EXPECT_NE(svg.find("prefers-color-scheme: dark"), std::string::npos);
}

}  // namespace kelvin::figure_test
