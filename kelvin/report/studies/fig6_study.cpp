#include <fmt/format.h>

#include <algorithm>

#include "kelvin/core/text.h"
#include "kelvin/report/plot/svg.h"
#include "kelvin/report/studies/study.h"

namespace kelvin {
namespace {

constexpr auto kFig6Section = "Over the scale";

std::string whole_text(double value) { return fmt::format("{:.0f}", value); }

std::string of_rank(double k) { return "k = " + whole_text(k); }

Definition with_rank(double k) { return {{"k", static_cast<int64_t>(k)}}; }

Axis fig6_scales() { return {.label = "scale c", .is_log = true}; }

// A row for each scale, and for each k a column of ranks and one of norms and cosines.
Table rank_by_scale(const Readings& readings, const std::vector<double>& ranks,
                    const std::vector<double>& scales) {
  Table table{.title = "Rank of softmax(c M)", .columns = {{"c", Alignment::right}}};
  for (const double k : ranks) table.columns.push_back({of_rank(k), Alignment::right});
  for (const double scale : scales) {
    std::vector<std::string> row = {short_number(scale, 3)};
    for (const double k : ranks) {
      auto with = with_rank(k);
      with["c"] = scale;
      row.push_back(short_number(reading_named(readings, "post_softmax_rank", with).value, 3));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table similarity_by_scale(const Readings& readings, const std::vector<double>& ranks,
                          const std::vector<double>& scales) {
  Table table{.title = "Norm of c M, and mean cosine of the columns of softmax(c M)",
              .columns = {{"c", Alignment::right}}};
  for (const double k : ranks) {
    table.columns.push_back({of_rank(k) + ": norm", Alignment::right});
    table.columns.push_back({"cosine", Alignment::right});
  }
  for (const double scale : scales) {
    std::vector<std::string> row = {short_number(scale, 3)};
    for (const double k : ranks) {
      auto with = with_rank(k);
      with["c"] = scale;
      row.push_back(short_number(reading_named(readings, "logits_norm", with).value, 3));
      row.push_back(fmt::format("{:.3f}", reading_named(readings, "column_cosine", with).value));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// What happens to one k from the smallest to the largest scale, in its own numbers.
std::string course_of(const Readings& readings, double k) {
  const auto course = readings_named(readings, "post_softmax_rank", with_rank(k));
  const auto peak =
      std::max_element(course.begin(), course.end(),
                       [](const Reading& a, const Reading& b) { return a.value < b.value; });
  const auto at = [&](const char* name, const Reading& place) {
    auto with = with_rank(k);
    with["c"] = place.definition.at("c");
    return reading_named(readings, name, with).value;
  };
  const auto& first = course.front();
  const auto& last = course.back();
  const auto place = [](const Reading& reading) {
    return short_number(reading.definition.at("c").get<double>(), 3);
  };
  const double argmaxes = reading_named(readings, "distinct_argmaxes", with_rank(k)).value;
  return fmt::format(
      "{}: rank {} at c = {}, where all columns are nearly the same (mean cosine {:.3f}, largest "
      "weight {:.3f}); {} at c = {} (cosine {:.3f}, largest weight {:.3f}); {} at c = {} (cosine "
      "{:.3f}, largest weight {:.3f}), where columns have {} different arg-maxes.",
      of_rank(k), short_number(first.value, 3), place(first), at("column_cosine", first),
      at("column_top_weight", first), short_number(peak->value, 3), place(*peak),
      at("column_cosine", *peak), at("column_top_weight", *peak), short_number(last.value, 3),
      place(last), at("column_cosine", last), at("column_top_weight", last),
      short_number(argmaxes, 3));
}

constexpr auto kWhyUnimodal =
    "Why it rises and falls: at a small scale every column is nearly uniform, so that one "
    "direction "
    "holds almost everything, and what tells columns apart is small beside it. As the scale grows, "
    "the exponential bends the k directions of M into many more, and columns become less alike. "
    "Beyond the peak each column gives all its weight to its arg-max: columns with the same "
    "arg-max "
    "become equal, and the rank falls towards the number of different ones.";

RunFigure line_over_scale(const Readings& readings, const std::vector<double>& ranks,
                          const std::string& quantity, const std::string& file, LineFigure figure,
                          const std::string& how_to_read) {
  for (size_t i = 0; i < ranks.size(); ++i) {
    figure.series.push_back({.label = of_rank(ranks[i]),
                             .colour = palette_colour(i, ranks.size()),
                             .points = points_over(readings, quantity, "c", with_rank(ranks[i]))});
  }
  return {.name = file,
          .section = kFig6Section,
          .figure = std::move(figure),
          .how_to_read = how_to_read + " Bands reach from the smallest to the largest draw.",
          .definition = ""};
}

}  // namespace

Study fig6_study(const Readings& readings) {
  const auto ranks = numbers_under(readings, "post_softmax_rank", "k");
  const auto scales = numbers_under(readings, "post_softmax_rank", "c");
  const auto& any = reading_named(readings, "post_softmax_rank").definition;
  Study study{.title = "Rank of a softmax over the scale of its logits"};
  study.findings = {fmt::format(
      "M = A B^T has n = {} rows and columns and entries of A and B from U(-1, 1); softmax by "
      "columns; ranks are singular values above {} times the largest; means over {} draws.",
      any.at("n").dump(), any.at("gamma").dump(), any.at("draws").dump())};
  for (const double k : ranks) study.findings.push_back(course_of(readings, k));
  study.findings.emplace_back(kWhyUnimodal);
  study.tables = {rank_by_scale(readings, ranks, scales),
                  similarity_by_scale(readings, ranks, scales)};
  study.figures = {
      line_over_scale(readings, ranks, "post_softmax_rank", "rank-over-scale",
                      {.title = "Rank of softmax(c M) over c, for M of rank k",
                       .x = fig6_scales(),
                       .y = {.label = "rank of softmax(c M)", .low = 0.0}},
                      "The rank of M is k at every scale; that of its softmax is not."),
      line_over_scale(readings, ranks, "column_cosine", "cosine-over-scale",
                      {.title = "How alike the columns of softmax(c M) are",
                       .x = fig6_scales(),
                       .y = {.label = "mean cosine of columns", .low = 0.0, .high = 1.0}},
                      "1 where all columns are the same; at a large scale the share of pairs of "
                      "columns with the same arg-max."),
      line_over_scale(readings, ranks, "column_top_weight", "top-weight-over-scale",
                      {.title = "Largest weight of the columns of softmax(c M)",
                       .x = fig6_scales(),
                       .y = {.label = "mean largest weight", .low = 0.0, .high = 1.0}},
                      "1 / n where columns are uniform, 1 where they are one-hot.")};
  return study;
}

}  // namespace kelvin
