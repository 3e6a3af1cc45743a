#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "kelvin/core/text.h"
#include "kelvin/report/page/html.h"
#include "kelvin/report/plot/svg.h"
#include "kelvin/report/studies/study.h"

namespace kelvin {
namespace {

constexpr auto kOwnMap = "softmax";
constexpr auto kMeanOverQueries = "mean over queries";
constexpr auto kLargestOfAQuery = "largest of a query";

int64_t whole_at(const Reading& reading, const char* key) {
  return reading.definition.value(key, int64_t{-1});
}

// Keys that a query sees.
struct KeyRange {
  int64_t least = 0;
  int64_t most = 0;

  double middle() const {
    return std::sqrt(static_cast<double>(least) * static_cast<double>(most));
  }
  std::string text() const {
    return least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
  }
  auto operator<=>(const KeyRange&) const = default;
};

struct Head {
  int64_t layer = 0;
  int64_t head = 0;
  auto operator<=>(const Head&) const = default;
};

// The readings of heads by what they are of, so that each is looked for once.
class HeadReadings {
 public:
  explicit HeadReadings(const Readings& readings) {
    for (const auto& reading : readings) {
      const Head head{whole_at(reading, "layer"), whole_at(reading, "head")};
      if (head.layer < 0 || head.head < 0) continue;
      heads_.insert(head);
      if (!reading.definition.contains("least_keys")) {
        ranks_[{reading.name, head}] = reading;
        continue;
      }
      const KeyRange range{whole_at(reading, "least_keys"), whole_at(reading, "most_keys")};
      ranges_.insert(range);
      values_[{reading.definition.value("attention", std::string()), reading.name,
               reading.definition.value("statistic", std::string()), head, range}] = reading.value;
    }
  }

  bool is_empty() const { return values_.empty(); }
  const std::set<Head>& heads() const { return heads_; }
  const std::set<KeyRange>& ranges() const { return ranges_; }

  double of(const Head& head, const KeyRange& range, const char* name,
            const char* statistic = kMeanOverQueries, const std::string& map = kOwnMap) const {
    const auto found = values_.find({map, name, statistic, head, range});
    return found == values_.end() ? std::nan("") : found->second;
  }

  // Over all heads, or those of a layer.
  double mean(const KeyRange& range, const char* name, int64_t layer = -1) const {
    double sum = 0;
    double count = 0;
    for (const auto& head : heads_) {
      if (layer >= 0 && head.layer != layer) continue;
      sum += of(head, range, name);
      ++count;
    }
    return sum / count;
  }

  double largest(const KeyRange& range, const char* name, const char* statistic) const {
    double most = 0;
    for (const auto& head : heads_) most = std::max(most, of(head, range, name, statistic));
    return most;
  }

  double sum(const char* name, const char* statistic) const {
    double all = 0;
    for (const auto& head : heads_) {
      for (const auto& range : ranges_) all += of(head, range, name, statistic);
    }
    return all;
  }

  // "12 of 48", with the bound.
  std::string rank(const char* name, const Head& head) const {
    const auto found = ranks_.find({name, head});
    if (found == ranks_.end()) return "";
    return fmt::format("{:.0f} of {}", found->second.value, whole_at(found->second, "upper_bound"));
  }

 private:
  std::set<Head> heads_;
  std::set<KeyRange> ranges_;
  std::map<std::tuple<std::string, std::string, std::string, Head, KeyRange>, double> values_;
  std::map<std::tuple<std::string, Head>, Reading> ranks_;
};

// The last range within the context that the model was trained on.
KeyRange trained_range(const HeadReadings& heads, int64_t context) {
  KeyRange last = *heads.ranges().begin();
  for (const auto& range : heads.ranges()) {
    if (range.most <= context) last = range;
  }
  return last;
}

std::vector<std::string> maps_in(const Readings& perplexities) {
  std::vector<std::string> maps;
  for (const auto& reading : perplexities) {
    const auto map = reading.definition.value("attention", std::string());
    if (std::find(maps.begin(), maps.end(), map) == maps.end()) maps.push_back(map);
  }
  return maps;
}

std::string perplexity_cell(const Readings& perplexities, const std::string& map, int64_t first,
                            int64_t last, const std::string& part) {
  for (const auto& reading : perplexities) {
    const bool is_it = reading.definition.value("attention", std::string()) == map &&
                       reading.definition.value("part", std::string()) == part &&
                       whole_at(reading, "first_position") == first &&
                       whole_at(reading, "last_position") == last;
    if (is_it) return short_number(reading.value, 5);
  }
  return "";
}

Table perplexity_table(const Readings& perplexities, const std::vector<std::string>& maps) {
  Table table{.title = "Perplexity by the number of tokens before the one that is told",
              .columns = {{"tokens before"}, {"told", Alignment::right}}};
  for (const auto& map : maps) table.columns.push_back({map, Alignment::right});
  for (const auto& reading : perplexities) {
    if (reading.definition.value("attention", std::string()) != maps.front()) continue;
    const auto part = reading.definition.value("part", std::string());
    const auto first = whole_at(reading, "first_position");
    const auto last = whole_at(reading, "last_position");
    std::vector<std::string> row = {part == "range"
                                        ? fmt::format("{} to {}", first, last)
                                        : fmt::format("{} to {} ({})", first, last, part),
                                    fmt::format("{}", whole_at(reading, "tokens"))};
    for (const auto& map : maps) {
      row.push_back(perplexity_cell(perplexities, map, first, last, part));
    }
    table.rows.push_back(std::move(row));
  }
  table.notes = {"Other maps take the place of softmax in a model that was trained with softmax."};
  return table;
}

Table length_table(const HeadReadings& heads) {
  Table table{.title = "Heads over the number of keys, means over all heads",
              .columns = {{"keys"},
                          {"spread", Alignment::right},
                          {"largest spread", Alignment::right},
                          {"spectral bound", Alignment::right},
                          {"entropy", Alignment::right},
                          {"ln n", Alignment::right},
                          {"top weight", Alignment::right},
                          {"allowed", Alignment::right}}};
  for (const auto& range : heads.ranges()) {
    table.rows.push_back(
        {range.text(), fmt::format("{:.2f}", heads.mean(range, "logit_spread")),
         fmt::format("{:.2f}", heads.largest(range, "logit_spread", kLargestOfAQuery)),
         fmt::format("{:.1f}", heads.mean(range, "logit_spread_bound")),
         fmt::format("{:.2f}", heads.mean(range, "attention_entropy_nats")),
         fmt::format("{:.2f}", heads.mean(range, "attention_log_keys")),
         fmt::format("{:.3f}", heads.mean(range, "attention_top_weight")),
         fmt::format("{:.3f}", heads.mean(range, "attention_top_weight_bound"))});
  }
  table.notes = {
      "Spread: largest less smallest score of the keys that a query sees. Spectral bound: 2 "
      "sigma_max(Q) sigma_max(K) |y| max |x| over the root of the head's width. Allowed: the "
      "largest weight that the spread of the query allows a softmax."};
  return table;
}

Table head_table(const HeadReadings& heads, const KeyRange& range) {
  Table table{.title = "Each head with " + range.text() + " keys",
              .columns = {{"layer", Alignment::right},
                          {"head", Alignment::right},
                          {"spread", Alignment::right},
                          {"largest", Alignment::right},
                          {"entropy", Alignment::right},
                          {"of ln n", Alignment::right},
                          {"top weight", Alignment::right},
                          {"rank of logits", Alignment::right},
                          {"of weights", Alignment::right}}};
  for (const auto& head : heads.heads()) {
    const double entropy = heads.of(head, range, "attention_entropy_nats");
    table.rows.push_back(
        {fmt::format("{}", head.layer), fmt::format("{}", head.head),
         fmt::format("{:.2f}", heads.of(head, range, "logit_spread")),
         fmt::format("{:.2f}", heads.of(head, range, "logit_spread", kLargestOfAQuery)),
         fmt::format("{:.2f}", entropy),
         fmt::format("{:.2f}", entropy / heads.of(head, range, "attention_log_keys")),
         fmt::format("{:.3f}", heads.of(head, range, "attention_top_weight")),
         heads.rank("attention_logits_rank", head), heads.rank("attention_shares_rank", head)});
  }
  table.notes = {
      "Ranks are of the matrices of the first window, as far as the model was trained: of all "
      "scores, seen or not, whose bound is the head's width; and of the weights, which are a "
      "triangle."};
  return table;
}

RunFigure perplexity_figure(const Readings& perplexities, const std::vector<std::string>& maps,
                            double context) {
  LineFigure figure{.title = "Perplexity over the tokens before",
                    .x = {.label = "tokens before", .is_log = true},
                    .y = {.label = "perplexity", .is_log = true}};
  for (size_t i = 0; i < maps.size(); ++i) {
    Series series{.label = maps[i], .colour = palette_colour(i, maps.size())};
    for (const auto& reading :
         readings_named(perplexities, "perplexity", {{"attention", maps[i]}, {"part", "range"}})) {
      const KeyRange range{whole_at(reading, "first_position"), whole_at(reading, "last_position")};
      series.points.push_back({.x = range.middle(), .y = reading.value});
    }
    figure.series.push_back(std::move(series));
  }
  figure.guides = {{.value = context, .label = "trained context", .is_vertical = true}};
  return {.name = "perplexity",
          .section = "Over the context",
          .figure = std::move(figure),
          .how_to_read = "A point for each range of positions, at its geometric middle.",
          .definition = ""};
}

RunFigure entropy_figure(const HeadReadings& heads, double context) {
  LineFigure figure{.title = "Entropy of the attention weights over the number of keys",
                    .x = {.label = "keys n", .is_log = true},
                    .y = {.label = "entropy in nats", .low = 0.0}};
  const auto layers = static_cast<size_t>(heads.heads().rbegin()->layer) + 1;
  for (size_t layer = 0; layer < layers; ++layer) {
    Series series{.label = fmt::format("layer {}", layer), .colour = palette_colour(layer, layers)};
    for (const auto& range : heads.ranges()) {
      series.points.push_back(
          {.x = range.middle(),
           .y = heads.mean(range, "attention_entropy_nats", static_cast<int64_t>(layer))});
    }
    figure.series.push_back(std::move(series));
  }
  Series uniform{.label = "ln n", .colour = kNeutralColour, .stroke = Stroke::dashed};
  for (const auto& range : heads.ranges()) {
    uniform.points.push_back({.x = range.middle(), .y = heads.mean(range, "attention_log_keys")});
  }
  figure.series.push_back(std::move(uniform));
  figure.guides = {{.value = context, .label = "trained context", .is_vertical = true}};
  return {.name = "attention-entropy",
          .section = "Over the context",
          .figure = std::move(figure),
          .how_to_read = "Means over the heads of a layer; ln n is the entropy of equal weights.",
          .definition = ""};
}

RunFigure map_of_heads(const HeadReadings& heads, const std::string& title, const char* name,
                       const std::function<double(const Head&)>& value,
                       const std::string& how_to_read) {
  HeatMapFigure figure{.title = title, .x_label = "head", .y_label = "layer"};
  for (const auto& head : heads.heads()) {
    const auto layer = static_cast<size_t>(head.layer);
    if (figure.rows.size() <= layer) figure.rows.resize(layer + 1);
    figure.rows[layer].push_back(value(head));
  }
  return {.name = name,
          .section = "Layers and heads",
          .figure = std::move(figure),
          .how_to_read = how_to_read,
          .definition = ""};
}

void add_findings(Study& study, const HeadReadings& heads, const Readings& perplexities,
                  const std::vector<std::string>& maps, int64_t context) {
  for (const auto& map : maps) {
    std::string within;
    std::string beyond;
    for (const auto& reading : readings_named(perplexities, "perplexity", {{"attention", map}})) {
      const auto part = reading.definition.value("part", std::string());
      if (part.starts_with("within")) within = short_number(reading.value, 4);
      if (part.starts_with("beyond")) beyond = short_number(reading.value, 4);
    }
    study.findings.push_back(
        fmt::format("Perplexity with {}: {} up to the {} tokens that the model was trained on{}.",
                    map, within, context, beyond.empty() ? "" : ", " + beyond + " beyond"));
  }
  const auto trained = trained_range(heads, context);
  const auto last = *heads.ranges().rbegin();
  const auto entropy = [&](const KeyRange& range) {
    return heads.mean(range, "attention_entropy_nats");
  };
  study.findings.push_back(fmt::format(
      "With {} keys the heads' mean spread of scores is {:.2f}, their mean entropy {:.2f} of ln n "
      "= {:.2f} nats, their mean top weight {:.3f}.",
      trained.text(), heads.mean(trained, "logit_spread"), entropy(trained),
      heads.mean(trained, "attention_log_keys"), heads.mean(trained, "attention_top_weight")));
  if (last != trained) {
    study.findings.push_back(fmt::format(
        "With {} keys the spread is {:.2f}, the entropy {:.2f} of {:.2f} nats: it grew by {:.2f} "
        "for each nat of ln n.",
        last.text(), heads.mean(last, "logit_spread"), entropy(last),
        heads.mean(last, "attention_log_keys"),
        (entropy(last) - entropy(trained)) /
            (heads.mean(last, "attention_log_keys") - heads.mean(trained, "attention_log_keys"))));
  }
  study.findings.push_back(fmt::format(
      "{:.0f} queries of a head have a spread of scores beyond the spectral norms of Q and K, or a "
      "weight beyond what their spread allows.",
      heads.sum("dispersion_violations", "queries beyond a bound")));
}

}  // namespace

Study language_study(const Readings& readings, const std::vector<HeatMapFigure>& heat,
                     const std::string& written) {
  Study study{.title = "Attention of a language model"};
  const auto perplexities = readings_named(readings, "perplexity");
  const HeadReadings heads(readings);
  if (!perplexities.empty() && !heads.is_empty()) {
    const auto maps = maps_in(perplexities);
    const auto& any = perplexities.front().definition;
    const auto context = any.at("context").get<int64_t>();
    study.title = fmt::format("Attention of {} over {}", any.at("model").get<std::string>(),
                              any.at("text").get<std::string>());
    study.findings = {fmt::format("{} tokens in windows of {}.", any.at("read_tokens").dump(),
                                  any.at("window").dump())};
    add_findings(study, heads, perplexities, maps, context);
    const auto trained = trained_range(heads, context);
    study.tables = {perplexity_table(perplexities, maps), length_table(heads),
                    head_table(heads, trained)};
    study.figures = {
        perplexity_figure(perplexities, maps, static_cast<double>(context)),
        entropy_figure(heads, static_cast<double>(context)),
        map_of_heads(
            heads, "Entropy over ln n with " + trained.text() + " keys", "entropy-of-heads",
            [&](const Head& head) {
              return heads.of(head, trained, "attention_entropy_nats") /
                     heads.of(head, trained, "attention_log_keys");
            },
            "The darker, the more evenly a head attends; 1 is even."),
        map_of_heads(
            heads, "Largest weight with " + trained.text() + " keys", "top-weight-of-heads",
            [&](const Head& head) { return heads.of(head, trained, "attention_top_weight"); },
            "The darker, the more a head attends to one token.")};
    for (const auto& map : heat) {
      study.figures.push_back({.name = slug(map.title),
                               .section = "Attention weights",
                               .figure = map,
                               .how_to_read =
                                   "A row for each of the first queries, a column for each key: "
                                   "the darker, the more weight.",
                               .definition = ""});
    }
  }
  if (!written.empty()) {
    constexpr size_t kMostWritten = 100000;
    study.findings.push_back("It writes: " + shown_line(written, kMostWritten));
  }
  return study;
}

}  // namespace kelvin
