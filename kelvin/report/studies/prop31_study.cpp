#include <fmt/format.h>

#include "kelvin/core/text.h"
#include "kelvin/report/studies/study.h"

namespace kelvin {
namespace {

std::vector<std::string> gap_cells(const Readings& readings, const Definition& with) {
  const double gap = reading_named(readings, "singular_gap", with).value;
  const double bound = reading_named(readings, "singular_gap_bound", with).value;
  return {short_number(gap, 5), short_number(bound, 5), short_number(bound - gap, 3),
          short_number(reading_named(readings, "column_similarity", with).value, 5)};
}

Table gap_table(const std::string& title, const std::string& first) {
  return {.title = title,
          .columns = {{first},
                      {"gap", Alignment::right},
                      {"bound", Alignment::right},
                      {"bound - gap", Alignment::right},
                      {"r", Alignment::right}}};
}

void add_row(Table& table, const std::string& name, std::vector<std::string> cells) {
  cells.insert(cells.begin(), name);
  table.rows.push_back(std::move(cells));
}

Table extremes_table(const Readings& readings) {
  auto table = gap_table("Where the bound is tight and where it is loose", "matrix");
  for (const char* which : {"tight", "loose"}) {
    for (const auto& gap : readings_named(readings, "singular_gap", {{"case", which}})) {
      const auto& meaning = gap.definition;
      add_row(table,
              fmt::format("{}: {}, n = {}", which, meaning.at("matrix").get<std::string>(),
                          meaning.at("n").dump()),
              gap_cells(readings, {{"case", which}, {"n", meaning.at("n")}}));
    }
  }
  return table;
}

Table decades_table(const Readings& readings) {
  auto table = gap_table("Random matrices by their scale, means", "scale");
  for (const double from : numbers_under(readings, "singular_gap", "scale_from")) {
    const auto& meaning =
        reading_named(readings, "singular_gap", {{"scale_from", from}}).definition;
    add_row(table,
            fmt::format("{} to {}", short_number(from, 3),
                        short_number(meaning.at("scale_to").get<double>(), 3)),
            gap_cells(readings, {{"scale_from", from}}));
  }
  return table;
}

RunFigure gap_figure(const Readings& readings) {
  LineFigure figure{.title = "Gap of the singular values and its bound, by scale",
                    .x = {.label = "scale of the random matrices", .is_log = true},
                    .y = {.label = "mean over matrices", .low = 0.0}};
  const auto means = Definition{{"statistic", "mean"}};
  figure.series = {{.label = "gap",
                    .colour = 0,
                    .points = points_over(readings, "singular_gap", "scale_from", means)},
                   {.label = "bound",
                    .colour = 5,
                    .stroke = Stroke::dashed,
                    .points = points_over(readings, "singular_gap_bound", "scale_from", means)}};
  return {.name = "gap-and-bound",
          .section = "Random matrices",
          .figure = std::move(figure),
          .how_to_read =
              "Each point stands for the decade that begins there. The more alike "
              "columns are, the further apart singular values may lie.",
          .definition = ""};
}

Study study_of_random(const Readings& readings) {
  const auto& violations = reading_named(readings, "singular_gap_violations");
  const auto& meaning = violations.definition;
  const double slack = reading_named(readings, "singular_gap_slack").value;
  Study study{.title = "Proposition 3.1: the gap between singular values of a softmax"};
  study.findings = {
      fmt::format("{} of {} random matrices of sizes {} to {} are beyond the bound; the bound less "
                  "the gap is at least {}, where rounding alone is below {}.",
                  short_number(violations.value), meaning.at("matrices").dump(),
                  meaning.at("sizes").at(0).dump(), meaning.at("sizes").at(1).dump(),
                  short_number(slack, 3), meaning.at("tolerance").dump()),
      "The bound is met where all columns are the same one-hot vector: r = n - 1, sigma_1 = "
      "sqrt(n), sigma_n = 0. It is loose for permutations: their singular values are all 1, and "
      "the bound is 1 - 1 / sqrt(n)."};
  study.tables = {decades_table(readings), extremes_table(readings)};
  study.figures = {gap_figure(readings)};
  return study;
}

}  // namespace

Study prop31_study(const Readings& readings) {
  if (!readings_named(readings, "singular_gap_violations").empty()) {
    return study_of_random(readings);
  }
  const auto& gap = reading_named(readings, "singular_gap");
  const double bound = reading_named(readings, "singular_gap_bound").value;
  const double similarity = reading_named(readings, "column_similarity").value;
  Study study{.title = "Proposition 3.1: the gap between singular values of these probabilities"};
  study.findings = {fmt::format(
      "Of {} samples at T = {}: sigma_1 less the smallest singular value of as many as there are "
      "samples is {}, the bound {}; r = {}. {}",
      gap.definition.at("samples").dump(), gap.definition.at("temperature").dump(),
      short_number(gap.value, 6), short_number(bound, 6), short_number(similarity, 6),
      gap.value <= bound * (1 + 1e-9) ? "The bound holds." : "The bound is violated.")};
  auto table = gap_table("", "probabilities");
  add_row(table, "softmax(M / T)", gap_cells(readings, {}));
  study.tables = {table};
  return study;
}

}  // namespace kelvin
