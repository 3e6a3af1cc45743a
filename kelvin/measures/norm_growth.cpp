#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/measures/input_gram.h"
#include "kelvin/measures/measure.h"
#include "kelvin/measures/spectrum_readings.h"
#include "kelvin/numerics/spectrum.h"
#include "kelvin/numerics/top_eigenvectors.h"
#include "kelvin/ops/numerical_rank.h"
#include "kelvin/ops/parallel_for.h"

namespace kelvin {
namespace {

constexpr int64_t kWeightNumbersAtOnce = int64_t{1} << 24;

double sum_of(const torch::Tensor& tensor) { return tensor.sum().item<double>(); }

// Equation 2: how large W A is, and how large it would be if the singular vectors of W and A were
// the same, in order; of all rotations of A that gives the largest norm (von Neumann, 1937).
struct NormParts {
  double of_singular_values = 0;
  double of_product = 0;
};

NormParts norm_parts(const LayerInputs& layer, const torch::Tensor& weight_spectrum) {
  const auto input_spectrum = layer.gram.singular_values();
  const auto count = std::min(weight_spectrum.size(0), input_spectrum.size(0));
  const auto products = weight_spectrum.slice(0, 0, count) * input_spectrum.slice(0, 0, count);
  // |W A|^2 is the trace of W (A A^T) W^T; rounding may leave it below 0.
  const auto square = sum_of(layer.weight.matmul(layer.input_gram()) * layer.weight);
  return {.of_singular_values = products.norm().item<double>(),
          .of_product = std::sqrt(std::max(square, 0.0))};
}

// The largest singular value of rows [samples, dims] that come in batches, from their products with
// each other: images may have far more numbers than the sample has images.
double top_singular_value(const std::vector<torch::Tensor>& batches, uint64_t seed) {
  const auto rows = torch::cat(batches);
  auto gram = torch::zeros({rows.size(0), rows.size(0)}, torch::kFloat64);
  const auto at_once = std::max<int64_t>(1, kWeightNumbersAtOnce / rows.size(0));
  for (int64_t begin = 0; begin < rows.size(1); begin += at_once) {
    const auto end = std::min(begin + at_once, rows.size(1));
    const auto part = rows.slice(1, begin, end).to(torch::kFloat64);
    gram += part.matmul(part.t());
  }
  const auto value = top_eigenvectors(gram, 1, {.seed = seed}).values[0].item<double>();
  return std::sqrt(std::max(value, 0.0));
}

// By what the logits grow: singular values of the weights, or vectors that come to point where the
// inputs are.
class NormGrowth : public Measure {
 public:
  NormGrowth(const MeasureContext& context, Settings& settings)
      : grams_(input_grams_of(context, "norm_growth", settings)),
        seed_(derive_seed(context.seed, "norm_growth")) {
    settings.read("gamma", gamma_);
    check_gamma(settings, gamma_);
  }

  Needs needs() const override {
    return {.layers = true, .layer_inputs = true, .sample = grams_->samples()};
  }

  void see_sample(const Record& record) override {
    const auto count = grams_->see(record);
    if (count == 0) return;
    if (weight_spectra_.empty()) {
      const auto& layers = grams_->layers();
      weight_spectra_.resize(layers.size());
      parallel_for_tasks(static_cast<int64_t>(layers.size()), [&](int64_t i) {
        const auto place = static_cast<size_t>(i);
        weight_spectra_[place] = torch::linalg_svdvals(layers[place].weight);
      });
      logits_.emplace(record.logits.size(1));
    }
    const auto logits = record.logits.narrow(0, 0, count).detach();
    check(torch::isfinite(logits).all().item<bool>(),
          "norm_growth: logits must be finite, have a NaN or an infinity");
    logits_->update(logits);
    inputs_.push_back(record.layers[0].input.narrow(0, 0, count).detach().flatten(1).clone());
  }
  void update(const Record& /*record*/) override {}

  // Both see the same sample.
  void merge(const Measure& other) override {
    const auto& theirs = static_cast<const NormGrowth&>(other);
    grams_->merge(*theirs.grams_);
    if (!weight_spectra_.empty()) return;
    weight_spectra_ = theirs.weight_spectra_;
    inputs_ = theirs.inputs_;
    logits_ = theirs.logits_;
  }

  NamedTensors state() const override {
    auto tensors = grams_->state();
    if (grams_->is_empty()) return tensors;
    tensors["inputs"] = torch::cat(inputs_);
    tensors["logits_gram"] = logits_->gram();
    return tensors;
  }

  Readings compute() const override {
    check(!grams_->is_empty(), "norm_growth: no sample of the test split was shown");
    std::vector<NormParts> norms(weight_spectra_.size());
    parallel_for_tasks(static_cast<int64_t>(norms.size()), [&](int64_t i) {
      const auto place = static_cast<size_t>(i);
      norms[place] = norm_parts(grams_->layers()[place], weight_spectra_[place]);
    });
    Readings parts;
    for (size_t i = 0; i < norms.size(); ++i) add_norm_parts(parts, i, norms[i]);
    Readings readings;
    // Those of the last layer stand for the network: its product is the logits.
    for (auto reading : parts) {
      if (reading.layer != grams_->layers().back().name) continue;
      reading.definition["layer"] = "the last";
      reading.layer.clear();
      readings.push_back(std::move(reading));
    }
    add_gains(readings);
    readings.insert(readings.end(), parts.begin(), parts.end());
    for (size_t i = 0; i < weight_spectra_.size(); ++i) add_weight(readings, i);
    return readings;
  }

  NamedTensors curves() const override {
    NamedTensors tensors;
    for (size_t i = 0; i < weight_spectra_.size(); ++i) {
      tensors["weight_spectrum/" + grams_->layers()[i].name] = weight_spectra_[i];
    }
    return tensors;
  }

  int64_t memory(const Record& example, int64_t samples) const override {
    if (example.layers.empty()) return 0;
    const auto& input = example.layers[0].input;
    const auto classes = example.logits.size(1);
    return grams_->memory("norm_growth", example) +
           classes * classes * static_cast<int64_t>(sizeof(double)) +
           std::min(samples, grams_->samples()) * input[0].numel() * input.element_size();
  }

 private:
  static void add(Readings& readings, const std::string& name, double value,
                  const std::string& layer, const Definition& definition) {
    readings.push_back(
        {.name = name, .value = value, .layer = layer, .split = "test", .definition = definition});
  }

  void add_norm_parts(Readings& readings, size_t index, const NormParts& parts) const {
    const auto& layer = grams_->layers()[index];
    auto definition = grams_->definition(layer);
    definition["matrix"] = "W A of the layer, without its bias";
    definition["of"] =
        "sqrt(sum_i sigma_i(W)^2 sigma_i(A)^2): the norm if singular vectors matched";
    add(readings, "norm_of_singular_values", parts.of_singular_values, layer.name, definition);
    if (parts.of_singular_values == 0) return;
    definition["of"] = "Frobenius norm of W A over norm_of_singular_values";
    // At most 1 but for rounding.
    add(readings, "norm_alignment", std::min(1.0, parts.of_product / parts.of_singular_values),
        layer.name, definition);
  }

  // How much a network that passes on its leading direction from layer to layer would amplify, and
  // how much this one does.  In logarithms, since products over many layers leave the range of
  // numbers; what does is left out.
  void add_gains(Readings& readings) const {
    double log_product = 0;
    for (const auto& spectrum : weight_spectra_) {
      log_product += std::log(spectrum[0].item<double>());
    }
    const auto log_gain = std::log(logits_->singular_values()[0].item<double>()) -
                          std::log(top_singular_value(inputs_, seed_));
    const auto add_exponential = [&](const char* name, double logarithm, const char* what) {
      const auto value = std::exp(logarithm);
      if (std::isfinite(value)) add(readings, name, value, "", definition_of_gain(what));
    };
    add_exponential("top_singular_product", log_product,
                    "product over layers of sigma_1(W), convolutions as (out x in * kernel)");
    add_exponential("network_gain", log_gain,
                    "sigma_1 of the raw logits (class x sample) over sigma_1 of the network's "
                    "input (number x sample): a gain, as the product is");
    add_exponential("top_singular_share", log_gain - log_product,
                    "network_gain over top_singular_product");
  }

  Definition definition_of_gain(const char* what) const {
    return {{"of", what},
            {"bias", true},
            {"centring", "none"},
            {"layers", static_cast<int64_t>(weight_spectra_.size())},
            {"samples", grams_->seen()},
            {"which", "a fixed random sample of the test split"},
            {"precision", "float32 forward, float64 SVD and Gram matrices"}};
  }

  void add_weight(Readings& readings, size_t index) const {
    const auto& layer = grams_->layers()[index];
    const auto& spectrum = weight_spectra_[index];
    Definition definition = {{"matrix", "W (out x in), convolutions as (out x in * kernel)"},
                             {"centring", "none"},
                             {"precision", "float32 weights, float64 SVD"}};
    add(readings, "layer_top_singular_value", spectrum[0].item<double>(), layer.name, definition);
    add(readings, "weight_norm", spectrum.norm().item<double>(), layer.name, definition);
    definition["upper_bound"] = spectrum.size(0);
    if (!layer.has_zero_weight()) {
      add(readings, "weight_stable_rank", stable_rank(spectrum), layer.name, definition);
    }
    definition["gamma"] = gamma_;
    definition["threshold"] = "gamma * sigma_1";
    add(readings, "weight_rank", static_cast<double>(numerical_rank(spectrum, gamma_)), layer.name,
        definition);
  }

  std::shared_ptr<InputGrams> grams_;
  double gamma_ = 1e-3;
  uint64_t seed_;
  std::vector<torch::Tensor> weight_spectra_;  // of each layer, descending
  std::optional<GramAccumulator> logits_;
  std::vector<torch::Tensor> inputs_;  // of the network, a row per sample
};

const bool norm_growth_registered = measures().add(
    "norm_growth",
    {
        .summary = "norm of each layer's product split into singular values and alignment",
        .reference = "Unpacking Softmax, section 3.1, equation 2",
        .make = [](const MeasureContext& context,
                   Settings& settings) { return std::make_unique<NormGrowth>(context, settings); },
    });

}  // namespace
}  // namespace kelvin
