#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/measures/measure.h"
#include "kelvin/measures/spectrum_readings.h"
#include "kelvin/ops/numerical_rank.h"

namespace kelvin {
namespace {

// What is known of each sample and head, in this order.
enum class Column : int64_t { shift_free_rank, raw_rank, shares_rank, entropy };

// One attention layer on the samples seen so far.
struct SeenAttention {
  std::string name;
  torch::Tensor values = {};  // [samples, heads, columns]
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t head_width = 0;  // 0 if not known
};

torch::Tensor doubles_of(const AttentionRecord& record, const torch::Tensor& matrices) {
  const auto doubles = matrices.to(torch::kFloat64);
  check(torch::isfinite(doubles).all().item<bool>(), "attention_rank: layer '", record.name,
        "' must be finite, has a NaN or an infinity");
  return doubles;
}

// Of matrices [samples, heads, queries, keys]: [samples, heads].
torch::Tensor ranks_of(const torch::Tensor& matrices, double gamma) {
  const auto values = torch::linalg_svdvals(matrices.flatten(0, 1));
  auto ranks = torch::empty({values.size(0)}, torch::kFloat64);
  for (int64_t i = 0; i < values.size(0); ++i) {
    ranks[i] = static_cast<double>(numerical_rank(values[i], gamma));
  }
  return ranks.view({matrices.size(0), matrices.size(1)});
}

// Of attention weights [samples, heads, queries, keys], over its largest value, mean over queries.
torch::Tensor entropies_of(const torch::Tensor& weights) {
  return -torch::xlogy(weights, weights).sum(-1).mean(-1) /
         std::log(static_cast<double>(weights.size(-1)));
}

// What the size of the matrix allows.  Rows without their means are orthogonal to 1, which takes
// one direction from the keys.
int64_t bound_by_size(const SeenAttention& layer, Column column) {
  return std::min(layer.queries, layer.keys - (column == Column::shift_free_rank ? 1 : 0));
}

// Logits are products of queries and keys, whose inner dimension is the width of a head, whatever
// biases they have; without their means rows are products with keys without their mean.  A map to
// the simplex may raise the rank to anything.
int64_t upper_bound(const SeenAttention& layer, Column column) {
  const auto by_size = bound_by_size(layer, column);
  const bool is_product = column != Column::shares_rank && layer.head_width > 0;
  return is_product ? std::min(by_size, layer.head_width) : by_size;
}

const char* name_of(Column column) {
  if (column == Column::entropy) return "attention_entropy";
  return column == Column::shares_rank ? "attention_shares_rank" : "attention_logits_rank";
}

// Numerical rank of what attention computes, and how evenly it looks, on the first samples of the
// test split.
class AttentionRank : public Measure {
 public:
  explicit AttentionRank(Settings& settings) {
    settings.read("gamma", gamma_);
    settings.read("samples", samples_);
    check_gamma(settings, gamma_);
    check(samples_ >= 1, settings.full_name("samples"), ": must be at least 1, got ", samples_);
  }

  Needs needs() const override { return {.attention = true}; }

  void update(const Record& record) override {
    if (record.is_ood() || record.split != Split::test) return;
    check(!record.attention.empty(),
          "attention_rank: the model must have attention layers, such as vit_tiny; it has none");
    const auto wanted = samples_ - seen();
    if (wanted == 0) return;
    std::vector<SeenAttention> layers;
    for (const auto& attention : record.attention) layers.push_back(look_at(attention, wanted));
    append(layers);
  }

  // Theirs is the stream after ours: its first samples are taken as long as ours are fewer than
  // wanted, so that two halves in order give what the whole gives, and a full measure stays as it
  // is.
  void merge(const Measure& other) override {
    append(static_cast<const AttentionRank&>(other).layers_);
  }

  NamedTensors state() const override {
    NamedTensors tensors;
    for (const auto& layer : layers_) {
      tensors[layer.name + "/values"] = layer.values;
      tensors[layer.name + "/shape"] =
          torch::tensor({layer.queries, layer.keys, layer.head_width}, torch::kInt64);
    }
    return tensors;
  }

  Readings compute() const override {
    check(!layers_.empty(), "attention_rank: no records of the test split were shown");
    Readings readings;
    for (const auto column :
         {Column::shift_free_rank, Column::raw_rank, Column::shares_rank, Column::entropy}) {
      add_readings(readings, column);
    }
    return readings;
  }

 private:
  int64_t seen() const { return layers_.empty() ? 0 : layers_[0].values.size(0); }

  // The first `wanted` samples, or all if they are fewer.
  SeenAttention look_at(const AttentionRecord& record, int64_t wanted) const {
    check(record.logits.dim() == 4 && record.logits.sizes() == record.weights.sizes(),
          "attention_rank: layer '", record.name,
          "' must have logits and weights [samples, heads, queries, keys], has ",
          record.logits.sizes(), " and ", record.weights.sizes());
    check(record.logits.size(3) >= 2, "attention_rank: layer '", record.name,
          "' must have at least 2 keys, has ", record.logits.size(3));
    const auto count = std::min(wanted, record.logits.size(0));
    const auto logits = doubles_of(record, record.logits.narrow(0, 0, count));
    const auto weights = doubles_of(record, record.weights.narrow(0, 0, count));
    // In the order of Column.
    const auto values =
        torch::stack({ranks_of(logits - logits.mean(-1, /*keepdim=*/true), gamma_),
                      ranks_of(logits, gamma_), ranks_of(weights, gamma_), entropies_of(weights)},
                     -1);
    return {.name = record.name,
            .values = values,
            .queries = logits.size(2),
            .keys = logits.size(3),
            .head_width = record.head_width};
  }

  void append(const std::vector<SeenAttention>& layers) {
    for (const auto& layer : layers) {
      auto found = std::find_if(layers_.begin(), layers_.end(),
                                [&](const auto& each) { return each.name == layer.name; });
      if (found == layers_.end()) {
        layers_.push_back(layer);
        continue;
      }
      // Never in place: states handed out share the tensor.
      const auto both = torch::cat({found->values, layer.values});
      found->values = both.narrow(0, 0, std::min(samples_, both.size(0)));
    }
  }

  // The mean over the network first, then that of each layer, then each head.
  void add_readings(Readings& readings, Column column) const {
    const auto column_of = [&](const SeenAttention& layer) {
      return layer.values.select(-1, static_cast<int64_t>(column));
    };
    const auto mean_of = [](const torch::Tensor& values) { return values.mean().item<double>(); };
    double sum = 0;
    for (const auto& layer : layers_) sum += mean_of(column_of(layer));
    const auto largest =
        std::max_element(layers_.begin(), layers_.end(), [&](const auto& a, const auto& b) {
          return upper_bound(a, column) < upper_bound(b, column);
        });
    readings.push_back({.name = name_of(column),
                        .value = sum / static_cast<double>(layers_.size()),
                        .split = "test",
                        .definition = definition(*largest, column, "samples, heads and layers")});
    for (const auto& layer : layers_) {
      readings.push_back({.name = name_of(column),
                          .value = mean_of(column_of(layer)),
                          .layer = layer.name,
                          .split = "test",
                          .definition = definition(layer, column, "samples and heads")});
    }
    for (const auto& layer : layers_) {
      for (int64_t head = 0; head < layer.values.size(1); ++head) {
        readings.push_back({.name = name_of(column),
                            .value = mean_of(column_of(layer).select(1, head)),
                            .layer = layer.name,
                            .split = "test",
                            .index = head,
                            .definition = definition(layer, column, "samples")});
      }
    }
  }

  Definition definition(const SeenAttention& layer, Column column, const char* mean_over) const {
    Definition result = {{"mean_over", mean_over},
                         {"samples", seen()},
                         {"which", "the first of the test split"},
                         {"queries", layer.queries},
                         {"keys", layer.keys}};
    if (column == Column::entropy) {
      result["of"] = "each query's shares";
      result["divided_by"] = "ln(keys)";
      result["precision"] = "float32 forward, float64 entropy";
      return result;
    }
    const bool is_logits = column != Column::shares_rank;
    result["matrix"] = is_logits ? "attention logits over the temperature (query x key)"
                                 : "attention shares (query x key)";
    result["shift_free"] = column == Column::shift_free_rank;
    result["gamma"] = gamma_;
    result["threshold"] = "gamma * sigma_1";
    result["precision"] = "float32 forward, float64 SVD";
    result["upper_bound"] = upper_bound(layer, column);
    result["bound_by_width"] = upper_bound(layer, column) < bound_by_size(layer, column);
    return result;
  }

  double gamma_ = 1e-3;
  int64_t samples_ = 64;
  std::vector<SeenAttention> layers_;  // in order of execution
};

const bool attention_rank_registered = measures().add(
    "attention_rank",
    {
        .summary =
            "numerical rank of attention logits and weights per head, entropy of the weights",
        .reference = "Low-rank bottleneck in multi-head attention models, arXiv 2002.07028",
        .make = [](const MeasureContext&,
                   Settings& settings) { return std::make_unique<AttentionRank>(settings); },
    });

}  // namespace
}  // namespace kelvin
