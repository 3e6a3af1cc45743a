#include "kelvin/experiment/tasks/inspect_language.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/text.h"
#include "kelvin/experiment/retrieval/retrieval_settings.h"
#include "kelvin/language/attention_statistics.h"
#include "kelvin/language/decoder_file.h"
#include "kelvin/ops/numerical_rank.h"

namespace kelvin {
namespace {

constexpr auto kOwnMap = "softmax";
constexpr int64_t kShownQueries = 64;

struct LanguageMap {
  std::string name;
  ScoreMap map;  // none: softmax
};

std::vector<LanguageMap> maps_of(const InspectLanguageRequest& request) {
  std::vector<LanguageMap> maps = {{.name = kOwnMap, .map = {}}};
  for (const auto& text : request.maps) {
    if (text != kOwnMap) maps.push_back({.name = text, .map = map_of_text(text, "--maps")});
  }
  return maps;
}

// 1 to 16 keys, 17 to 32, 33 to 64 and so on to the window; a range ends with the trained context.
std::vector<int64_t> edges_of(int64_t window, int64_t context) {
  std::vector<int64_t> edges = {1};
  for (int64_t most = 16; most < window; most *= 2) edges.push_back(most + 1);
  edges.push_back(window + 1);
  if (context < window) edges.push_back(context + 1);
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

// Windows that begin as every text does; the last one may be shorter.
std::vector<std::vector<int64_t>> windows_of(const std::vector<int64_t>& tokens, int64_t window) {
  std::vector<std::vector<int64_t>> windows;
  for (size_t i = 0; i < tokens.size();) {
    const auto count = std::min(tokens.size() - i, static_cast<size_t>(window - 1));
    windows.push_back({Tokenizer::kBegin});
    windows.back().insert(windows.back().end(), tokens.begin() + static_cast<int64_t>(i),
                          tokens.begin() + static_cast<int64_t>(i + count));
    i += count;
  }
  return windows;
}

torch::Tensor token_row(const std::vector<int64_t>& tokens) {
  return torch::tensor(tokens, torch::kInt64).unsqueeze(0);
}

// -log p of each token but the first: [n - 1], in nats.
torch::Tensor token_losses(const torch::Tensor& logits, const torch::Tensor& tokens) {
  const auto n = tokens.size(1);
  return torch::cross_entropy_loss(logits[0].narrow(0, 0, n - 1).to(torch::kFloat64),
                                   tokens[0].narrow(0, 1, n - 1), {}, torch::Reduction::None);
}

// Sums of losses by the position of the token that is told: as many tokens stand before it.
struct LossesByPosition {
  torch::Tensor sums;
  torch::Tensor counts;

  explicit LossesByPosition(int64_t window)
      : sums(torch::zeros({window}, torch::kFloat64)),
        counts(torch::zeros({window}, torch::kFloat64)) {}

  void add(const torch::Tensor& losses) {
    sums.narrow(0, 1, losses.size(0)) += losses;
    counts.narrow(0, 1, losses.size(0)) += 1;
  }

  // Over positions from `first` to below `end`; nothing if there are none.
  std::optional<Reading> perplexity(int64_t first, int64_t end, Definition meaning) const {
    end = std::min(end, counts.size(0));
    const auto part = [&](const torch::Tensor& all) {
      return first >= end ? 0.0 : all.slice(0, first, end).sum().item<double>();
    };
    const double count = part(counts);
    if (count == 0) return std::nullopt;
    check(std::isfinite(part(sums)), "attention inspect: the model's logits must be finite");
    meaning["first_position"] = first;
    meaning["last_position"] = end - 1;
    meaning["tokens"] = static_cast<int64_t>(count);
    return Reading{.name = "perplexity",
                   .value = std::exp(part(sums) / count),
                   .definition = std::move(meaning)};
  }
};

class Inspection {
 public:
  Inspection(const InspectLanguageRequest& request, const RunContext& context)
      : request_(request),
        context_(context),
        decoder_(read_decoder(request.model)),
        tokenizer_(read_tokenizer(request.tokenizer, decoder_)) {
    const auto& shape = decoder_.shape();
    window_ = request.window == 0 ? 4 * shape.context : request.window;
    meaning_ = {{"model", request.model.filename().string()},
                {"text", request.text.filename().string()},
                {"context", shape.context}};
  }

  InspectedLanguage result() {
    if (!request_.text.empty()) read_text();
    if (request_.generate > 0) write();
    return std::move(result_);
  }

 private:
  void read_text() {
    const auto where = request_.text.string();
    constexpr int64_t kMostTextBytes = int64_t{1} << 26;
    const auto text = read_stored_file(request_.text, kMostTextBytes);
    check(is_utf8(text), where, ": must be text in UTF-8");
    auto tokens = tokenizer_.encode(beginning(text));
    if (static_cast<int64_t>(tokens.size()) > request_.tokens) {
      tokens.resize(static_cast<size_t>(request_.tokens));
    }
    check(tokens.size() >= 2, where, ": needs at least two tokens, has ", tokens.size());
    meaning_["read_tokens"] = tokens.size();
    window_ = std::min(window_, static_cast<int64_t>(tokens.size()) + 1);
    meaning_["window"] = window_;
    check_memory("--window", window_);
    const auto windows = windows_of(tokens, window_);
    const auto maps = maps_of(request_);
    const auto total = static_cast<int64_t>(windows.size() * maps.size());
    int64_t done = 0;
    for (const auto& map : maps) {
      LossesByPosition losses(window_);
      AttentionStatistics statistics(decoder_, edges_of(window_, decoder_.shape().context),
                                     map.name == kOwnMap);
      for (size_t i = 0; i < windows.size(); ++i) {
        check(!context_.should_stop(), "stopped at ", map.name, "; nothing is shown");
        pass_over(windows[i], map, i == 0, statistics, losses);
        context_.report_progress({.phase = "inspect " + map.name, .done = ++done, .total = total});
      }
      add_perplexities(losses, map.name, statistics.edges());
      add_statistics(statistics, map.name);
    }
    add_heat();
  }

  // So much of a text that it has the tokens that are wanted, whole letters of it.
  std::string_view beginning(std::string_view text) const {
    const auto longest = tokenizer_.longest_piece();
    auto bytes = std::min(text.size(), static_cast<size_t>(request_.tokens) * longest);
    while (bytes < text.size() && (static_cast<uint8_t>(text[bytes]) & 0xC0U) == 0x80U) ++bytes;
    return text.substr(0, bytes);
  }

  // Of one pass over so many tokens.
  void check_memory(const char* where, int64_t tokens) const {
    constexpr double kMatrices = 6;  // of the size of the scores, at the same time
    constexpr double kOfLogits = sizeof(float) + 2 * sizeof(double);
    constexpr double kMostBytes = double{8} * (int64_t{1} << 30);
    const auto n = static_cast<double>(tokens);
    const auto bytes =
        kMatrices * sizeof(float) * static_cast<double>(decoder_.shape().heads) * n * n +
        kOfLogits * static_cast<double>(decoder_.shape().vocabulary) * n;
    check(bytes <= kMostBytes, where, ": ", tokens, " tokens in ", decoder_.shape().heads,
          " heads need ", byte_text(static_cast<int64_t>(bytes)), ", at most ",
          byte_text(static_cast<int64_t>(kMostBytes)), " are used");
  }

  void pass_over(const std::vector<int64_t>& window, const LanguageMap& map, bool is_first,
                 AttentionStatistics& statistics, LossesByPosition& losses) {
    const auto tokens = token_row(window);
    const bool has_ranks = is_first && map.name == kOwnMap;
    const auto watch = [&](const WatchedAttention& seen) {
      statistics.update(seen);
      if (has_ranks) add_ranks(seen);
    };
    const auto logits = decoder_.logits(tokens, {.map = map.map, .watch = watch});
    losses.add(token_losses(logits, tokens));
  }

  Definition head_meaning(int64_t layer, int64_t head, const std::string& map) const {
    auto meaning = meaning_;
    meaning["attention"] = map;
    meaning["layer"] = layer;
    meaning["head"] = head;
    return meaning;
  }

  // Scores as products of queries and keys, seen or not; weights of those that are seen.
  void add_ranks(const WatchedAttention& seen) {
    const auto n = std::min(decoder_.shape().context, seen.scores.size(-1));
    const auto first = [&](const torch::Tensor& matrices) {
      return matrices[0].narrow(-2, 0, n).narrow(-1, 0, n);
    };
    const auto logits_ranks = numerical_ranks(first(seen.scores), request_.gamma);
    const auto weights_ranks = numerical_ranks(first(seen.weights), request_.gamma);
    for (int64_t head = 0; head < decoder_.shape().heads; ++head) {
      const auto add = [&](const char* name, const torch::Tensor& ranks, int64_t bound) {
        auto meaning = head_meaning(seen.layer, head, kOwnMap);
        meaning["n"] = n;
        meaning["gamma"] = request_.gamma;
        meaning["upper_bound"] = bound;
        result_.readings.push_back({.name = name,
                                    .value = static_cast<double>(ranks[head].item<int64_t>()),
                                    .definition = std::move(meaning)});
      };
      add("attention_logits_rank", logits_ranks, std::min(n, decoder_.shape().head_width()));
      add("attention_shares_rank", weights_ranks, n);
    }
    first_weights_.push_back(first(seen.weights).narrow(-2, 0, std::min(n, kShownQueries)));
  }

  void add_perplexities(const LossesByPosition& losses, const std::string& map,
                        const std::vector<int64_t>& edges) {
    const auto add = [&](int64_t first, int64_t end, const char* part) {
      auto meaning = meaning_;
      meaning["attention"] = map;
      meaning["part"] = part;
      const auto reading = losses.perplexity(first, end, std::move(meaning));
      if (reading) result_.readings.push_back(*reading);
    };
    const auto context = decoder_.shape().context;
    // A query that sees n keys tells the token at position n.
    add(1, context + 1, "within the trained context");
    add(context + 1, window_, "beyond the trained context");
    for (size_t i = 0; i + 1 < edges.size(); ++i) add(edges[i], edges[i + 1], "range");
  }

  void add_statistics(const AttentionStatistics& statistics, const std::string& map) {
    for (int64_t layer = 0; layer < decoder_.shape().layers; ++layer) {
      for (int64_t head = 0; head < decoder_.shape().heads; ++head) {
        for (size_t range = 0; range < statistics.ranges(); ++range) {
          const auto of_head = statistics.of(layer, head, range);
          if (of_head.queries == 0) continue;
          auto meaning = head_meaning(layer, head, map);
          meaning["least_keys"] = statistics.edges()[range];
          meaning["most_keys"] = statistics.edges()[range + 1] - 1;
          meaning["queries"] = static_cast<int64_t>(of_head.queries);
          add_head(of_head, meaning);
        }
      }
    }
  }

  void add_head(const HeadStatistics& of_head, const Definition& meaning) {
    const auto add = [&](const char* name, const char* statistic, double value) {
      auto own = meaning;
      own["statistic"] = statistic;
      result_.readings.push_back({.name = name, .value = value, .definition = std::move(own)});
    };
    constexpr auto kMean = "mean over queries";
    constexpr auto kLargest = "largest of a query";
    add("logit_spread", kMean, of_head.spread);
    add("logit_spread", kLargest, of_head.largest_spread);
    add("logit_spread_bound", kMean, of_head.spread_bound);
    add("logit_spread_over_bound", kLargest, of_head.largest_part_of_bound);
    add("attention_entropy_nats", kMean, of_head.entropy);
    add("attention_log_keys", kMean, of_head.log_keys);
    add("attention_top_weight", kMean, of_head.top_weight);
    add("attention_top_weight_bound", kMean, of_head.top_weight_bound);
    add("dispersion_violations", "queries beyond a bound", of_head.violations);
  }

  // Of the head whose weights are the most even, and of the one whose are the least.
  void add_heat() {
    struct Place {
      double entropy = 0;
      size_t layer = 0;
      int64_t head = 0;
    };
    std::vector<Place> places;
    for (size_t layer = 0; layer < first_weights_.size(); ++layer) {
      const auto& weights = first_weights_[layer];
      const auto entropies = -torch::xlogy(weights, weights).sum(-1).mean(-1);
      for (int64_t head = 0; head < entropies.size(0); ++head) {
        places.push_back({entropies[head].item<double>(), layer, head});
      }
    }
    const auto by_entropy = [](const Place& a, const Place& b) { return a.entropy < b.entropy; };
    const auto [least, most] = std::minmax_element(places.begin(), places.end(), by_entropy);
    for (const auto& place : {*least, *most}) {
      const auto weights = first_weights_[place.layer][place.head];
      const auto shown = weights.narrow(-1, 0, weights.size(0)).to(torch::kFloat64).contiguous();
      AttentionRows rows{.attention = "layer " + std::to_string(place.layer) + ", head " +
                                      std::to_string(place.head),
                         .items = shown.size(0)};
      for (int64_t i = 0; i < shown.size(0); ++i) {
        const auto* begin = shown[i].data_ptr<double>();
        rows.rows.emplace_back(begin, begin + shown.size(1));
      }
      result_.heat.push_back(std::move(rows));
    }
  }

  void write() {
    auto tokens = tokenizer_.encode(request_.prompt);
    tokens.insert(tokens.begin(), Tokenizer::kBegin);
    check_memory("--prompt", static_cast<int64_t>(tokens.size()));
    KeyValueCache cache;
    auto next = token_row(tokens);
    for (int64_t i = 0; i < request_.generate; ++i) {
      check(!context_.should_stop(), "stopped while writing; nothing is shown");
      const auto logits = decoder_.logits(next, {.cache = &cache});
      const auto likeliest = logits[0][-1].argmax().item<int64_t>();
      if (likeliest == Tokenizer::kBegin || likeliest == Tokenizer::kEnd) break;
      tokens.push_back(likeliest);
      next = token_row({likeliest});
      context_.report_progress({.phase = "write", .done = i + 1, .total = request_.generate});
    }
    result_.written = tokenizer_.decode(tokens);
  }

  const InspectLanguageRequest& request_;
  const RunContext& context_;
  Decoder decoder_;
  Tokenizer tokenizer_;
  int64_t window_ = 0;
  Definition meaning_;
  std::vector<torch::Tensor> first_weights_;  // of each layer [heads, queries, keys]
  InspectedLanguage result_;
};

}  // namespace

InspectedLanguage inspect_language(const InspectLanguageRequest& request,
                                   const RunContext& context) {
  const torch::NoGradGuard no_grad;
  check(request.window == 0 || request.window >= 2,
        "--window: must be 2 tokens or more, or 0 for four times the context, got ",
        request.window);
  check(request.tokens >= 2, "--tokens: must be at least 2, got ", request.tokens);
  check(request.generate >= 0, "--generate: must not be below 0, got ", request.generate);
  check(request.gamma > 0 && request.gamma < 1, "--gamma: must be in (0, 1), got ", request.gamma);
  check(!request.text.empty() || request.generate > 0,
        "attention inspect: needs a text (--text) or something to write (--generate)");
  return Inspection(request, context).result();
}

namespace {

const bool inspect_language_registered = add_task(inspect_language);

}  // namespace
}  // namespace kelvin
