#include <fmt/format.h>

#include "kelvin/core/text.h"
#include "kelvin/report/studies/study.h"

namespace kelvin {
namespace {

Study study_of_circle(const Readings& readings) {
  Study study{.title = "Proposition 3.2: classifiers of rank 2 for any number of classes"};
  Table table{.title = "Class weights on a circle",
              .columns = {{"classes", Alignment::right},
                          {"probability", Alignment::right},
                          {"scale needed", Alignment::right},
                          {"scale / classes^2", Alignment::right},
                          {"rank in float32", Alignment::right},
                          {"accuracy", Alignment::right},
                          {"smallest probability", Alignment::right}}};
  for (const auto& scale : readings_named(readings, "circle_scale")) {
    const Definition with = {{"classes", scale.definition.at("classes")},
                             {"probability", scale.definition.at("probability")}};
    const auto value = [&](const char* name) { return reading_named(readings, name, with).value; };
    const auto classes = scale.definition.at("classes").get<double>();
    table.rows.push_back(
        {short_number(classes), short_number(scale.definition.at("probability").get<double>()),
         short_number(scale.value, 5), short_number(scale.value / (classes * classes), 4),
         short_number(value("solution_rank")), fmt::format("{:.1f} %", 100 * value("accuracy")),
         short_number(value("smallest_true_probability"), 6)});
  }
  study.tables = {table};
  study.findings = {
      "Logits alpha cos(2 pi (k - y) / c) have rank 2 and their largest value at the true class y. "
      "The margin to the classes beside it is alpha (1 - cos(2 pi / c)), which is about 2 pi^2 "
      "alpha / c^2: the scale alpha has to grow with the square of the number of classes.",
      "Without a bias rank 1 has only two winners, the classes with the largest and the smallest "
      "weight, so that 2 is the least for three classes or more."};
  LineFigure figure{.title = "Scale that the circle needs",
                    .x = {.label = "classes", .is_log = true},
                    .y = {.label = "scale alpha", .is_log = true}};
  int64_t colour = 0;
  for (const double probability : numbers_under(readings, "circle_scale", "probability")) {
    figure.series.push_back({.label = "probability " + short_number(probability),
                             .colour = colour++,
                             .points = points_over(readings, "circle_scale", "classes",
                                                   {{"probability", probability}})});
  }
  study.figures = {{.name = "circle-scale",
                    .section = "Construction",
                    .figure = std::move(figure),
                    .how_to_read = "For the true class to get a probability, by the number of "
                                   "classes.",
                    .definition = ""}};
  return study;
}

}  // namespace

Study prop32_study(const Readings& readings) {
  if (!readings_named(readings, "circle_scale").empty()) return study_of_circle(readings);
  const auto& accuracy = reading_named(readings, "accuracy");
  const auto& rank = reading_named(readings, "solution_rank");
  const double smallest = reading_named(readings, "smallest_true_probability").value;
  const double below = reading_named(readings, "samples_below_half").value;
  const auto& meaning = accuracy.definition;
  const bool is_shown = accuracy.value == 1 && rank.value <= 2 && below == 0;
  Study study{.title = "Proposition 3.2: this network's rank and its training images"};
  study.findings = {fmt::format(
      "{} on {} training images of {}: accuracy {} %, rank of the logits {}, smallest probability "
      "of a true class {}; {} images have one of at most 1/2. {}",
      meaning.at("model").get<std::string>(), meaning.at("samples").dump(),
      meaning.at("dataset").get<std::string>(), short_number(100 * accuracy.value, 6),
      short_number(rank.value), short_number(smallest, 4), short_number(below),
      is_shown ? "This is a solution of rank 2 as the proposition has it."
               : "This is no solution of rank 2.")};
  Table table{.columns = {{"quantity"}, {"value", Alignment::right}}};
  for (const auto& reading : readings) {
    table.rows.push_back({reading.name, short_number(reading.value, 6)});
  }
  if (rank.definition.contains("sigma_3_over_sigma_1")) {
    table.rows.push_back(
        {"sigma_3 / sigma_1",
         short_number(rank.definition.at("sigma_3_over_sigma_1").get<double>(), 3)});
  }
  study.tables = {table};
  return study;
}

}  // namespace kelvin
