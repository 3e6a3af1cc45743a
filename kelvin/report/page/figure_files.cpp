#include "kelvin/report/page/figure_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "kelvin/report/figures/figures.h"
#include "kelvin/report/plot/svg.h"
#include "kelvin/report/tables/collapse_steps.h"
#include "kelvin/report/tables/comparison.h"
#include "kelvin/report/tables/table.h"

namespace kelvin {

std::map<std::string, std::string> figure_svgs(const PageInput& input) {
  std::map<std::string, std::string> files;
  for (const auto& figure : run_figures(input.runs, compare(input.runs), input.cases)) {
    files[figure.name] =
        standalone_svg(std::visit([](const auto& plot) { return svg_of(plot); }, figure.figure));
  }
  return files;
}

namespace {

std::string csv_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}

bool has_named_points(const LineFigure& figure) {
  return std::any_of(figure.series.begin(), figure.series.end(), [](const Series& series) {
    return std::any_of(series.points.begin(), series.points.end(),
                       [](const PlotPoint& point) { return !point.name.empty(); });
  });
}

Table data_table(const LineFigure& figure) {
  Table table;
  const bool has_layers = !figure.x.names.empty();
  const bool has_points = has_named_points(figure);
  std::vector<std::string> names = {"series", "detail"};
  if (has_points) names.emplace_back("point");
  for (const auto& name : {has_layers ? std::string("layer") : figure.x.label, figure.y.label,
                           std::string("low"), std::string("high")}) {
    names.push_back(name);
  }
  for (const auto& name : names) table.columns.push_back({.name = name});
  std::string label;
  for (const auto& series : figure.series) {
    // A series without a label goes on with the one before it: another seed.
    if (!series.label.empty()) label = series.label;
    for (const auto& point : series.points) {
      std::vector<std::string> row = {label, series.detail};
      if (has_points) row.push_back(point.name);
      row.push_back(has_layers ? figure.x.names.at(static_cast<size_t>(point.x))
                               : csv_number(point.x));
      for (const double value : {point.y, point.low, point.high}) row.push_back(csv_number(value));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

Table data_table(const HistogramFigure& figure) {
  Table table{.title = "", .columns = {{.name = "low"}, {.name = "high"}}, .rows = {}};
  for (const auto& population : figure.populations) {
    table.columns.push_back({.name = population.label});
  }
  for (const auto& bin : bins_of(figure)) {
    std::vector<std::string> row = {csv_number(bin.low), csv_number(bin.high)};
    for (const double fraction : bin.fractions) row.push_back(csv_number(fraction));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table data_table(const HeatMapFigure& figure) {
  Table table{.columns = {{figure.y_label}, {figure.x_label}, {"value"}}};
  for (size_t row = 0; row < figure.rows.size(); ++row) {
    for (size_t column = 0; column < figure.rows[row].size(); ++column) {
      table.rows.push_back({std::to_string(row + 1), std::to_string(column + 1),
                            csv_number(figure.rows[row][column])});
    }
  }
  return table;
}

}  // namespace

std::map<std::string, std::string> figure_csvs(const PageInput& input) {
  std::map<std::string, std::string> csvs = {
      {"fit-and-collapse", csv_of(collapse_table(input.runs))}};
  for (const auto& figure : run_figures(input.runs, compare(input.runs), input.cases)) {
    csvs[figure.name] =
        csv_of(std::visit([](const auto& each) { return data_table(each); }, figure.figure));
  }
  return csvs;
}

}  // namespace kelvin
