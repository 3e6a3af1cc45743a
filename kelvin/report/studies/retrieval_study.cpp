#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "kelvin/core/text.h"
#include "kelvin/report/page/html.h"
#include "kelvin/report/plot/svg.h"
#include "kelvin/report/studies/study.h"
#include "kelvin/statistics/paired_test.h"
#include "kelvin/statistics/summary.h"

namespace kelvin {
namespace {

constexpr auto kBaseline = "softmax";
constexpr auto kPublished = "adaptive";

// The table of "softmax is not enough", in per cent.
struct PublishedAccuracy {
  double n = 0;
  const char* baseline = "";
  const char* adaptive = "";
};

// Those with a tilde were read in other sources and are not confirmed.
constexpr std::array kPublishedAccuracies = {
    PublishedAccuracy{16, "98.6", "98.6"},    PublishedAccuracy{32, "~97.1", "~97.1"},
    PublishedAccuracy{64, "94.3", "94.5"},    PublishedAccuracy{128, "~89.7", "~89.9"},
    PublishedAccuracy{256, "81.3", "82.1"},   PublishedAccuracy{512, "70.1", "72.5"},
    PublishedAccuracy{1024, "53.8", "57.7"},  PublishedAccuracy{2048, "35.7", "39.4"},
    PublishedAccuracy{4096, "22.6", "24.9"},  PublishedAccuracy{8192, "~15.7", "~17.5"},
    PublishedAccuracy{16384, "12.4", "14.0"},
};

// A map in networks that were trained with one.
struct AttentionInUse {
  std::string trained_with = {};
  std::string used = {};

  bool is_own() const { return trained_with == used; }
  std::string label() const { return is_own() ? used : used + " at inference"; }
  auto operator<=>(const AttentionInUse&) const = default;
};

AttentionInUse attention_of(const Reading& reading) {
  return {.trained_with = reading.definition.value("trained_with", std::string()),
          .used = reading.definition.value("attention", std::string())};
}

// Those there are: softmax first, then what takes its place, then other networks.
std::vector<AttentionInUse> attentions_in(const Readings& readings) {
  std::vector<AttentionInUse> all;
  for (const auto& reading : readings_named(readings, "retrieval_accuracy")) {
    const auto attention = attention_of(reading);
    if (std::find(all.begin(), all.end(), attention) == all.end()) all.push_back(attention);
  }
  std::stable_sort(all.begin(), all.end(), [](const AttentionInUse& a, const AttentionInUse& b) {
    const auto place = [](const AttentionInUse& each) {
      return each.trained_with == kBaseline ? 0 : 1;
    };
    return place(a) < place(b);
  });
  return all;
}

// By seed of the network.
using BySeed = std::map<int64_t, double>;

BySeed by_seed(const Readings& readings, const std::string& name, const AttentionInUse& attention,
               double n) {
  BySeed values;
  for (const auto& reading : readings_named(
           readings, name,
           {{"n", n}, {"trained_with", attention.trained_with}, {"attention", attention.used}})) {
    values[reading.definition.at("seed").get<int64_t>()] = reading.value;
  }
  return values;
}

std::vector<double> values_of(const BySeed& of_seeds) {
  std::vector<double> values;
  for (const auto& [seed, value] : of_seeds) values.push_back(value);
  return values;
}

// "89.7 ± 1.2" in per cent, the 95 % interval of the mean over seeds.
std::string percent_cell(const BySeed& of_seeds) {
  if (of_seeds.empty()) return "";
  const auto summary = summarise(values_of(of_seeds));
  if (summary.count == 1) return fmt::format("{:.1f}", 100 * summary.mean);
  return fmt::format("{:.1f} ± {:.1f}", 100 * summary.mean, 100 * summary.half_width);
}

// Of the same seeds with another map; nothing if there are fewer than two.
std::optional<PairedTest> test_of(const BySeed& other, const BySeed& baseline) {
  std::vector<double> a;
  std::vector<double> b;
  for (const auto& [seed, value] : other) {
    const auto found = baseline.find(seed);
    if (found == baseline.end()) continue;
    a.push_back(value);
    b.push_back(found->second);
  }
  if (a.size() < 2) return std::nullopt;
  return paired_test(a, b);
}

std::string p_cell(const std::optional<PairedTest>& test) {
  if (!test) return "";
  return test->p < 1e-3 ? fmt::format("{:.0e}", test->p) : fmt::format("{:.3f}", test->p);
}

std::string size_text(double n) { return fmt::format("{:.0f}", n); }

// Softmax beside what takes its place at inference, with paired tests, and the paper's numbers.
Table inference_table(const Readings& readings, const std::vector<double>& sizes,
                      const std::vector<AttentionInUse>& attentions) {
  Table table{.title = "Accuracy in %, networks trained with softmax",
              .columns = {{"n", Alignment::right}, {kBaseline, Alignment::right}}};
  const AttentionInUse baseline{kBaseline, kBaseline};
  for (const auto& attention : attentions) {
    if (attention.trained_with != kBaseline || attention.is_own()) continue;
    table.columns.push_back({attention.used, Alignment::right});
    table.columns.push_back({"p", Alignment::right});
  }
  table.columns.push_back({"paper: softmax", Alignment::right});
  table.columns.push_back({"adaptive", Alignment::right});
  for (const double n : sizes) {
    const auto own = by_seed(readings, "retrieval_accuracy", baseline, n);
    std::vector<std::string> row = {size_text(n), percent_cell(own)};
    for (const auto& attention : attentions) {
      if (attention.trained_with != kBaseline || attention.is_own()) continue;
      const auto other = by_seed(readings, "retrieval_accuracy", attention, n);
      row.push_back(percent_cell(other));
      row.push_back(p_cell(test_of(other, own)));
    }
    const auto published = std::find_if(kPublishedAccuracies.begin(), kPublishedAccuracies.end(),
                                        [&](const PublishedAccuracy& each) { return each.n == n; });
    const bool is_known = published != kPublishedAccuracies.end();
    row.emplace_back(is_known ? published->baseline : "");
    row.emplace_back(is_known ? published->adaptive : "");
    table.rows.push_back(std::move(row));
  }
  table.notes = {
      "± is half of the 95 % interval of the mean over seeds; p is that of a two-sided paired "
      "t-test against softmax over the same seeds and sets. Chance is 10 %. Of the paper's numbers "
      "those with ~ are not confirmed; it trained for more steps."};
  return table;
}

// Networks trained with each map, evaluated with it.
Table retrained_table(const Readings& readings, const std::vector<double>& sizes,
                      const std::vector<AttentionInUse>& attentions) {
  Table table{.title = "Accuracy in %, each network with the map it was trained with",
              .columns = {{"n", Alignment::right}}};
  for (const auto& attention : attentions) {
    if (attention.is_own()) table.columns.push_back({attention.used, Alignment::right});
  }
  for (const double n : sizes) {
    std::vector<std::string> row = {size_text(n)};
    for (const auto& attention : attentions) {
      if (!attention.is_own()) continue;
      row.push_back(percent_cell(by_seed(readings, "retrieval_accuracy", attention, n)));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

double mean_over_seeds(const Readings& readings, const std::string& name,
                       const AttentionInUse& attention, double n) {
  const auto values = values_of(by_seed(readings, name, attention, n));
  return values.empty() ? NAN : summarise(values).mean;
}

double mean_spread(const Readings& readings, const std::string& name, const std::string& trained,
                   double n, const std::string& statistic) {
  std::vector<double> values;
  for (const auto& reading : readings_named(
           readings, name, {{"n", n}, {"trained_with", trained}, {"statistic", statistic}})) {
    values.push_back(reading.value);
  }
  return values.empty() ? NAN : summarise(values).mean;
}

// What the heads trained with softmax do with their weights.
Table head_table(const Readings& readings, const std::vector<double>& sizes,
                 const AttentionInUse& attention) {
  Table table{.title = "Weights of " + attention.label() + ", means over sets and seeds",
              .columns = {{"n", Alignment::right},
                          {"ln n", Alignment::right},
                          {"entropy", Alignment::right},
                          {"entropy / ln n", Alignment::right},
                          {"largest weight", Alignment::right},
                          {"weight of the right item", Alignment::right}}};
  for (const double n : sizes) {
    const double entropy = mean_over_seeds(readings, "attention_entropy_nats", attention, n);
    table.rows.push_back(
        {size_text(n), fmt::format("{:.2f}", std::log(n)), fmt::format("{:.2f}", entropy),
         fmt::format("{:.2f}", entropy / std::log(n)),
         fmt::format("{:.4f}", mean_over_seeds(readings, "attention_top_weight", attention, n)),
         fmt::format("{:.4f}", mean_over_seeds(readings, "attention_right_weight", attention, n))});
  }
  return table;
}

Series series_of(const Readings& readings, const std::string& name, const AttentionInUse& attention,
                 const std::vector<double>& sizes, int64_t colour) {
  Series series{.label = attention.label(), .colour = colour};
  for (const double n : sizes) {
    const auto values = values_of(by_seed(readings, name, attention, n));
    if (values.empty()) continue;
    const auto summary = summarise(values);
    series.points.push_back(
        {.x = n, .y = summary.mean, .low = summary.smallest, .high = summary.largest});
  }
  return series;
}

RunFigure figure_over_size(const Readings& readings, const std::string& name,
                           const std::vector<AttentionInUse>& attentions,
                           const std::vector<double>& sizes, const std::string& file,
                           LineFigure figure, const std::string& how_to_read) {
  for (size_t i = 0; i < attentions.size(); ++i) {
    figure.series.push_back(
        series_of(readings, name, attentions[i], sizes, palette_colour(i, attentions.size())));
  }
  return {.name = file,
          .section = "Over the number of items",
          .figure = std::move(figure),
          .how_to_read = how_to_read + " Bands reach from the lowest to the highest seed.",
          .definition = ""};
}

std::vector<RunFigure> figures_over_size(const Readings& readings,
                                         const std::vector<AttentionInUse>& attentions,
                                         const std::vector<double>& sizes) {
  const Axis items{.label = "items n", .is_log = true};
  std::vector<RunFigure> figures = {
      figure_over_size(readings, "retrieval_accuracy", attentions, sizes, "retrieval-accuracy",
                       {.title = "Accuracy of max retrieval",
                        .x = items,
                        .y = {.label = "accuracy", .is_percent = true, .low = 0.0, .high = 1.0},
                        .guides = {{.value = 0.1, .label = "chance"}}},
                       "Which class has the item of the highest priority."),
      figure_over_size(readings, "attention_entropy_nats", attentions, sizes, "attention-entropy",
                       {.title = "Entropy of the attention weights",
                        .x = items,
                        .y = {.label = "entropy in nats", .low = 0.0}},
                       "A bounded spread of the scores makes it grow like ln n, the dashed line."),
      figure_over_size(readings, "attention_right_weight", attentions, sizes, "right-weight",
                       {.title = "Weight of the item that the answer is about",
                        .x = items,
                        .y = {.label = "weight", .is_log = true}},
                       "A weight that falls like 1 / n disperses.")};
  auto& entropy = std::get<LineFigure>(figures[1].figure);
  Series uniform{.label = "ln n", .colour = kNeutralColour, .stroke = Stroke::dashed};
  for (const double n : sizes) uniform.points.push_back({.x = n, .y = std::log(n)});
  entropy.series.push_back(std::move(uniform));
  return figures;
}

// How the entropy of softmax grows with ln n, and where the published polynomial switches itself
// off.
void add_findings(Study& study, const Readings& readings, const std::vector<double>& sizes) {
  constexpr double kOffEntropy = 5.94452;  // where the published polynomial falls to 1
  const AttentionInUse baseline{kBaseline, kBaseline};
  if (by_seed(readings, "retrieval_accuracy", baseline, sizes.front()).empty()) return;
  const auto entropy = [&](double n) {
    return mean_over_seeds(readings, "attention_entropy_nats", baseline, n);
  };
  const auto spread = [&](double n) {
    return mean_spread(readings, "logit_spread", kBaseline, n, "mean over sets");
  };
  const double first = sizes.front();
  const double last = sizes.back();
  if (last > first) {
    study.findings.push_back(fmt::format(
        "The scores of softmax spread by {:.2f} at n = {} and by {:.2f} at n = {}, while its "
        "entropy grows from {:.2f} to {:.2f} nats: by {:.2f} for each nat of ln n.",
        spread(first), size_text(first), spread(last), size_text(last), entropy(first),
        entropy(last), (entropy(last) - entropy(first)) / (std::log(last) - std::log(first))));
  }
  const auto off =
      std::find_if(sizes.begin(), sizes.end(), [&](double n) { return entropy(n) > kOffEntropy; });
  if (off != sizes.end()) {
    study.findings.push_back(fmt::format(
        "From n = {} on the mean entropy of softmax, {:.2f} nats, is above the {:.2f} nats where "
        "the published polynomial falls back to 1: there it leaves most sets as they are.",
        size_text(*off), entropy(*off), kOffEntropy));
  }
  const AttentionInUse adaptive{kBaseline, kPublished};
  std::vector<std::string> better;
  for (const double n : sizes) {
    const auto test = test_of(by_seed(readings, "retrieval_accuracy", adaptive, n),
                              by_seed(readings, "retrieval_accuracy", baseline, n));
    if (test && test->p < 0.05) {
      better.push_back(fmt::format("{} ({:+.1f})", size_text(n), 100 * test->difference));
    }
  }
  if (!better.empty()) {
    study.findings.push_back(
        "The published adaptive temperature differs from softmax with p < 0.05 at n = " +
        join(better, ", ") + ", in percentage points.");
  }
  double violations = 0;
  for (const auto& reading : readings_named(readings, "dispersion_violations")) {
    violations += reading.value;
  }
  study.findings.push_back(fmt::format(
      "{} sets have weights beyond what the spread of their scores allows, or scores that spread "
      "beyond the spectral norms of Q and K.",
      short_number(violations)));
}

}  // namespace

Study retrieval_study(const Readings& readings, const std::vector<HeatMapFigure>& heat) {
  const auto sizes = numbers_under(readings, "retrieval_accuracy", "n");
  const auto attentions = attentions_in(readings);
  Study study{.title = "Max retrieval: one attention head on more items than it was trained on"};
  const auto& any = reading_named(readings, "retrieval_accuracy").definition;
  study.findings = {fmt::format(
      "Trained for {} steps on sets of {} to {} items, evaluated on {} sets of each size, the same "
      "for all.",
      any.at("trained_steps").dump(), any.at("trained_sizes").at(0).dump(),
      any.at("trained_sizes").at(1).dump(), any.at("sets").dump())};
  add_findings(study, readings, sizes);
  const auto own = std::count_if(attentions.begin(), attentions.end(),
                                 [](const AttentionInUse& each) { return each.is_own(); });
  const AttentionInUse baseline{kBaseline, kBaseline};
  const bool has_baseline =
      std::find(attentions.begin(), attentions.end(), baseline) != attentions.end();
  if (has_baseline) study.tables.push_back(inference_table(readings, sizes, attentions));
  if (own > 1 || !has_baseline) {
    study.tables.push_back(retrained_table(readings, sizes, attentions));
  }
  for (const auto& attention : attentions) {
    const bool is_shown = has_baseline ? attention.trained_with == kBaseline &&
                                             (attention.is_own() || attention.used == kPublished)
                                       : attention.is_own();
    if (is_shown) study.tables.push_back(head_table(readings, sizes, attention));
  }
  study.figures = figures_over_size(readings, attentions, sizes);
  for (const auto& map : heat) {
    study.figures.push_back({.name = slug(map.title),
                             .section = "Attention weights",
                             .figure = map,
                             .how_to_read =
                                 "A row for each of 32 sets, a column for each of the 16 "
                                 "items of the highest priority, the highest first: the "
                                 "darker, the more weight.",
                             .definition = ""});
  }
  return study;
}

}  // namespace kelvin
