#include <torch/types.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/measures/input_gram.h"
#include "kelvin/measures/measure.h"
#include "kelvin/numerics/top_eigenvectors.h"
#include "kelvin/ops/parallel_for.h"

namespace kelvin {
namespace {

// Singular vectors of smaller values, relative to the largest, are noise of float32 and not shown.
constexpr double kNegligible = 1e-5;

// The vectors [dims, at most k] of a Gram matrix that has an entry above 0, without noise.
TopEigenvectors top_of_gram(const torch::Tensor& gram, int64_t k, uint64_t seed) {
  const auto top = top_eigenvectors(gram, std::min(k, gram.size(0)), {.seed = seed});
  const auto threshold = kNegligible * kNegligible * top.values[0];
  const auto count = (top.values > threshold).sum().item<int64_t>();
  return {.values = top.values.slice(0, 0, count), .vectors = top.vectors.slice(1, 0, count)};
}

// [in, at most k], from the Gram matrix of the smaller side.
torch::Tensor right_singular_vectors(const torch::Tensor& weight, int64_t k, uint64_t seed) {
  if (weight.size(0) >= weight.size(1)) {
    return top_of_gram(weight.t().matmul(weight), k, seed).vectors;
  }
  const auto left = top_of_gram(weight.matmul(weight.t()), k, seed);
  return weight.t().matmul(left.vectors) / left.values.sqrt();
}

// Absolute cosines of one layer; those of layers that have none are undefined.
struct LayerAlignment {
  const LayerInputs* layer = nullptr;
  torch::Tensor cosines;  // [vectors of W, vectors of A], by descending singular values
};

// How far each layer's weights look where its inputs are: cosines between the leading right
// singular vectors of W and the leading left singular vectors of A.
class Alignment : public Measure, public KeepsSnapshots {
 public:
  Alignment(const MeasureContext& context, Settings& settings)
      : grams_(input_grams_of(context, "alignment", settings)),
        seed_(derive_seed(context.seed, "alignment")) {
    settings.read("k", k_);
    check(k_ >= 1, settings.full_name("k"), ": must be at least 1, got ", k_);
  }

  Needs needs() const override {
    return {.layers = true, .layer_inputs = true, .sample = grams_->samples()};
  }

  void see_sample(const Record& record) override {
    grams_->see(record);
    alignments_.reset();
  }
  void update(const Record& /*record*/) override {}

  void merge(const Measure& other) override {
    grams_->merge(*static_cast<const Alignment&>(other).grams_);
    alignments_.reset();
  }

  NamedTensors state() const override { return grams_->state(); }

  Readings compute() const override {
    check(!grams_->is_empty(), "alignment: no sample of the test split was shown");
    Readings readings;
    double sum = 0;
    for (const auto& [layer, cosines] : alignments()) {
      if (!cosines.defined()) continue;
      const auto largest = cosines.max().item<double>();
      sum += largest;
      readings.push_back({.name = "alignment",
                          .value = largest,
                          .layer = layer->name,
                          .split = "test",
                          .definition = definition(*layer, cosines)});
    }
    if (!readings.empty()) {
      const auto count = static_cast<int64_t>(readings.size());
      readings.insert(readings.begin(), {.name = "alignment",
                                         .value = sum / static_cast<double>(count),
                                         .split = "test",
                                         .definition = definition_of_mean(count)});
    }
    return readings;
  }

  NamedTensors curves() const override {
    NamedTensors tensors;
    for (const auto& [layer, cosines] : alignments()) {
      if (cosines.defined()) tensors["alignment/" + layer->name] = cosines;
    }
    return tensors;
  }

  NamedTensors curves_of_snapshot() const override { return curves(); }

  int64_t memory(const Record& example, int64_t /*samples*/) const override {
    return grams_->memory("alignment", example);
  }

 private:
  // Readings and curves both need them, and eigenvectors take seconds.
  const std::vector<LayerAlignment>& alignments() const {
    if (!alignments_) {
      const auto& layers = grams_->layers();
      alignments_.emplace(layers.size());
      parallel_for_tasks(static_cast<int64_t>(layers.size()), [&](int64_t i) {
        const auto& layer = layers[static_cast<size_t>(i)];
        (*alignments_)[static_cast<size_t>(i)] = {.layer = &layer, .cosines = cosines_of(layer)};
      });
    }
    return *alignments_;
  }

  torch::Tensor cosines_of(const LayerInputs& layer) const {
    if (layer.has_zero_weight() || layer.has_zero_input()) return {};
    const auto of_weight = right_singular_vectors(layer.weight, k_, seed_);
    const auto k = std::min(k_, layer.columns());
    const auto of_input = top_of_gram(layer.input_gram(), k, seed_).vectors;
    return of_weight.t().matmul(of_input).abs().clamp_max(1);
  }

  Definition shared_definition(const LayerInputs& layer) const {
    auto result = grams_->definition(layer);
    result["of"] = "abs cosines of right singular vectors of W and left singular vectors of A";
    result["k"] = k_;
    result["left_out"] = "singular values below 1e-5 of the largest";
    return result;
  }

  Definition definition(const LayerInputs& layer, const torch::Tensor& cosines) const {
    auto result = shared_definition(layer);
    result["max_over"] = "pairs of vectors";
    result["weight_vectors"] = cosines.size(0);
    result["input_vectors"] = cosines.size(1);
    return result;
  }

  Definition definition_of_mean(int64_t layers) const {
    auto result = shared_definition(grams_->layers().front());
    for (const char* key : {"columns", "position_stride"}) result.erase(key);
    result["max_over"] = "pairs of vectors";
    result["mean_over"] = "layers";
    result["layers"] = layers;
    result["zero_layers_left_out"] = static_cast<int64_t>(grams_->layers().size()) - layers;
    return result;
  }

  std::shared_ptr<InputGrams> grams_;
  int64_t k_ = 15;
  uint64_t seed_;
  mutable std::optional<std::vector<LayerAlignment>> alignments_;
};

const bool alignment_registered = measures().add(
    "alignment",
    {
        .summary = "largest cosine of leading singular vectors of each layer's weights and inputs",
        .reference = "Unpacking Softmax, section 3.1, Figures 3 and 10",
        .make = [](const MeasureContext& context,
                   Settings& settings) { return std::make_unique<Alignment>(context, settings); },
    });

}  // namespace
}  // namespace kelvin
