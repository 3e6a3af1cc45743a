#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kelvin/core/text.h"
#include "kelvin/report/studies/study.h"

namespace kelvin {
namespace {

double polynomial_at(const std::vector<double>& coefficients, double x) {
  double value = 0;
  for (const double each : coefficients) value = value * x + each;
  return value;
}

// Beta is 1 where the polynomial is below it, as published.
Series beta_curve(const std::string& label, const std::vector<double>& coefficients,
                  int64_t colour) {
  constexpr int kPlaces = 100;
  constexpr double kMostEntropy = 10;
  Series series{.label = label, .colour = colour};
  for (int i = 0; i <= kPlaces; ++i) {
    const double entropy = kMostEntropy * i / kPlaces;
    series.points.push_back(
        {.x = entropy,
         .y = entropy <= 0.5 ? 1 : std::max(1.0, polynomial_at(coefficients, entropy))});
  }
  return series;
}

std::vector<double> coefficients_of(const Readings& readings, const char* polynomial) {
  return reading_named(readings, "beta_peak_entropy", {{"polynomial", polynomial}})
      .definition.at("coefficients")
      .get<std::vector<double>>();
}

std::string course_text(const Readings& readings, const char* polynomial) {
  const Definition with = {{"polynomial", polynomial}};
  const auto text = [&](const char* name) {
    return short_number(reading_named(readings, name, with).value, 5);
  };
  auto sentence = fmt::format("The {} polynomial is largest, {}, at {} nats", polynomial,
                              text("beta_peak"), text("beta_peak_entropy"));
  if (readings_named(readings, "beta_off_entropy", with).empty()) {
    return sentence + " and stays above 1 beyond.";
  }
  return sentence +
         fmt::format(
             " and falls back to 1 at {} nats, the entropy of {} equal logits: from "
             "there on it switches itself off, unless past_the_peak is hold or grow.",
             text("beta_off_entropy"),
             short_number(
                 std::ceil(std::exp(reading_named(readings, "beta_off_entropy", with).value)), 9));
}

}  // namespace

Study beta_study(const Readings& readings) {
  Study study{.title = "An adaptive temperature for these heads"};
  Table table{.title = "Beta that makes the right answer most probable, means",
              .columns = {{"n", Alignment::right},
                          {"entropy of softmax", Alignment::right},
                          {"best beta", Alignment::right},
                          {"at the least", Alignment::right},
                          {"at the most", Alignment::right},
                          {"sets", Alignment::right}}};
  LineFigure figure{.title = "Beta over the entropy",
                    .x = {.label = "entropy of softmax in nats", .low = 0.0},
                    .y = {.label = "beta", .low = 0.0}};
  Series best{.label = "best, by size", .colour = 0, .stroke = Stroke::points_alone};
  for (const auto& beta : readings_named(readings, "best_beta")) {
    const auto& meaning = beta.definition;
    const auto& entropy =
        reading_named(readings, "attention_entropy_nats", {{"n", meaning.at("n")}});
    table.rows.push_back({meaning.at("n").dump(), fmt::format("{:.2f}", entropy.value),
                          fmt::format("{:.2f}", beta.value), meaning.at("at_the_least").dump(),
                          meaning.at("at_the_most").dump(), meaning.at("sets").dump()});
    best.points.push_back(
        {.x = entropy.value, .y = beta.value, .name = "n = " + meaning.at("n").dump()});
  }
  table.notes = {"At the least or most: sets whose best beta is at an end of the range tried."};
  const auto fitted = coefficients_of(readings, "fitted");
  std::vector<std::string> numbers;
  for (const double each : fitted) numbers.push_back(short_number(each, 5));
  study.findings = {"The fitted coefficients, the highest power of the entropy first: " +
                        join(numbers, ", ") + "; the root mean square of what they leave is " +
                        short_number(reading_named(readings, "beta_error").value, 3) + ".",
                    course_text(readings, "published"), course_text(readings, "fitted")};
  study.tables = {table};
  figure.series = {best, beta_curve("published", coefficients_of(readings, "published"), 5),
                   beta_curve("fitted", fitted, 2)};
  study.figures = {{.name = "beta-over-entropy",
                    .section = "Fit",
                    .figure = std::move(figure),
                    .how_to_read = "Points are means over sets of one size; lines the polynomials, "
                                   "past their peaks as they fall.",
                    .definition = ""}};
  return study;
}

}  // namespace kelvin
