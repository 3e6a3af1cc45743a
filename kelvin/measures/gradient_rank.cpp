#include <ATen/Parallel.h>
#include <torch/types.h>

#include <algorithm>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/measures/measure.h"
#include "kelvin/numerics/gram.h"
#include "kelvin/numerics/spectrum.h"
#include "kelvin/ops/layer_matrices.h"
#include "kelvin/ops/numerical_rank.h"
#include "kelvin/ops/parallel_for.h"

namespace kelvin {
namespace {

constexpr int64_t kShownValues = 5;
constexpr int64_t kGradientNumbersAtOnce = int64_t{1}
                                           << 22;  // of unfolded patches, of each layer at work
constexpr double kLeastGamma = 1e-6;  // below, rounding of Gram matrices would be counted

// Singular values of the gradient and of the input of one layer, descending.
struct LayerSpectra {
  std::string name;
  torch::Tensor gradient;
  torch::Tensor input;
  int64_t out = 0;
  int64_t in = 0;
  int64_t columns = 0;  // of A
};

torch::Tensor finite_doubles(const LayerRecord& layer, const char* what,
                             const torch::Tensor& tensor) {
  auto doubles = tensor.detach().to(torch::kFloat64);
  check(torch::isfinite(doubles).all().item<bool>(), "gradient_rank: ", what, " of layer '",
        layer.name, "' must be finite, has a NaN or an infinity");
  return doubles;
}

torch::Tensor input_of(const LayerRecord& layer, int64_t begin, int64_t count) {
  return input_matrix(layer.weight, layer.input.narrow(0, begin, count),
                      {.stride = layer.stride, .padding = layer.padding});
}

// Of A [in, columns], a few samples at a time where it has more columns than rows.
torch::Tensor input_spectrum(const LayerRecord& layer, int64_t in, int64_t columns) {
  const auto samples = layer.input.size(0);
  if (columns <= in) {
    GramAccumulator gram(columns);
    gram.update(input_of(layer, 0, samples));
    return gram.singular_values();
  }
  GramAccumulator gram(in);
  const auto at_once = std::max<int64_t>(1, kGradientNumbersAtOnce / (in * (columns / samples)));
  for (int64_t begin = 0; begin < samples; begin += at_once) {
    gram.update(input_of(layer, begin, std::min(at_once, samples - begin)).t());
  }
  return gram.singular_values();
}

LayerSpectra spectra_of(const LayerRecord& layer) {
  check(layer.gradient.defined() && layer.gradient.sizes() == layer.weight.sizes(),
        "gradient_rank: layer '", layer.name, "' must have a gradient of the size of its weight, ",
        layer.weight.sizes(), ", has ",
        layer.gradient.defined() ? c10::str(layer.gradient.sizes()) : "none");
  check(layer.input.size(0) > 0, "gradient_rank: layer '", layer.name,
        "' must have seen a sample, has seen none");
  // The sum of a sample is not finite as soon as one number is not.
  finite_doubles(layer, "input", layer.input.detach().flatten(1).sum(1));
  const auto gradient = weight_matrix(finite_doubles(layer, "gradient", layer.gradient));
  const auto columns = input_of(layer, 0, 1).size(1) * layer.input.size(0);
  return {.name = layer.name,
          .gradient = torch::linalg_svdvals(gradient),
          .input = input_spectrum(layer, gradient.size(1), columns),
          .out = gradient.size(0),
          .in = gradient.size(1),
          .columns = columns};
}

// Numerical rank of each layer's gradient beside that of its input.  The gradient is a product,
// dL/dW = (dL/dZ) A^T, whose rank cannot exceed that of A; a numerical rank can.
class GradientRank : public Measure {
 public:
  GradientRank(const MeasureContext& context, Settings& settings)
      : loss_(context.loss), temperature_(context.temperature) {
    settings.read("gamma", gamma_);
    check(gamma_ >= kLeastGamma && gamma_ < 1, settings.full_name("gamma"), ": must be in [",
          kLeastGamma, ", 1), got ", gamma_);
  }

  Needs needs() const override { return {.layers = true, .layer_inputs = true, .gradients = true}; }

  void update(const Record& /*record*/) override {}

  void see_gradients(const Record& record) override {
    check(!record.layers.empty(), "gradient_rank: records must have layers, got none");
    layers_.clear();
    layers_.resize(record.layers.size());
    parallel_for_tasks(static_cast<int64_t>(layers_.size()), [&](int64_t i) {
      layers_[static_cast<size_t>(i)] = spectra_of(record.layers[static_cast<size_t>(i)]);
    });
    split_ = record.split;
    samples_ = record.layers[0].input.size(0);
  }

  // Both see the same gradients.
  void merge(const Measure& other) override {
    if (layers_.empty()) *this = static_cast<const GradientRank&>(other);
  }

  NamedTensors state() const override {
    NamedTensors tensors;
    for (const auto& layer : layers_) {
      tensors[layer.name + "/gradient"] = layer.gradient;
      tensors[layer.name + "/input"] = layer.input;
    }
    return tensors;
  }

  Readings compute() const override {
    check(!layers_.empty(), "gradient_rank: no gradients were shown");
    Readings readings;
    int64_t violations = 0;
    for (const auto& layer : layers_) violations += rank(layer.gradient) > rank(layer.input);
    add(readings, {.name = "gradient_rank_violations",
                   .value = static_cast<double>(violations),
                   .definition = definition_of_violations()});
    for (const auto& layer : layers_) {
      add(readings, {.name = "gradient_rank",
                     .value = static_cast<double>(rank(layer.gradient)),
                     .layer = layer.name,
                     .definition = definition_of_gradient(layer)});
    }
    for (const auto& layer : layers_) {
      add(readings, {.name = "activation_rank",
                     .value = static_cast<double>(rank(layer.input)),
                     .layer = layer.name,
                     .definition = definition_of_input(layer)});
    }
    add_singular_values(readings);
    return readings;
  }

  // Spectra, and on each core the sums over a layer's input while it is looked at.
  int64_t memory(const Record& example, int64_t /*samples*/) const override {
    constexpr auto kDouble = static_cast<int64_t>(sizeof(double));
    int64_t spectra = 0;
    int64_t widest = 1;
    for (const auto& layer : example.layers) {
      if (!layer.weight.defined()) continue;
      const auto in = weight_matrix(layer.weight).size(1);
      spectra += 2 * in * kDouble;
      widest = std::max(widest, in);
    }
    const auto patches = 2 * kGradientNumbersAtOnce * static_cast<int64_t>(sizeof(float));
    const auto at_work = parallel_gram_bytes(kGradientNumbersAtOnce / widest, widest);
    return spectra + at::get_num_threads() * (at_work + widest * widest * kDouble + patches);
  }

  NamedTensors curves() const override {
    NamedTensors tensors;
    for (const auto& layer : layers_) {
      tensors["gradient_spectrum/" + layer.name] = layer.gradient;
      tensors["activation_spectrum/" + layer.name] = layer.input;
    }
    return tensors;
  }

 private:
  int64_t rank(const torch::Tensor& singular_values) const {
    return numerical_rank(singular_values, gamma_);
  }

  void add(Readings& readings, Reading reading) const {
    reading.split = name_of(split_);
    readings.push_back(std::move(reading));
  }

  void add_singular_values(Readings& readings) const {
    for (const auto& layer : layers_) {
      auto definition = definition_of_gradient(layer);
      for (const char* key : {"gamma", "threshold", "upper_bound"}) definition.erase(key);
      for (int64_t i = 0; i < std::min(kShownValues, layer.gradient.size(0)); ++i) {
        add(readings, {.name = "gradient_singular_value",
                       .value = layer.gradient[i].item<double>(),
                       .layer = layer.name,
                       .index = i,
                       .definition = definition});
      }
    }
  }

  Definition shared_definition() const {
    return {{"centring", "none"},
            {"gamma", gamma_},
            {"threshold", "gamma * sigma_1"},
            {"samples", samples_},
            {"which", "one fixed batch"},
            {"loss", loss_},
            {"temperature", temperature_},
            {"mode", "evaluation; batch statistics at initialisation"}};
  }

  Definition definition_of_violations() const {
    auto result = shared_definition();
    result["of"] = "layers whose gradient_rank exceeds their activation_rank";
    result["layers"] = static_cast<int64_t>(layers_.size());
    result["matrix"] = "of each layer its gradient in W and its input A";
    result["precision"] = "float32 forward and gradient, float64 SVD and Gram matrix";
    result["note"] = "the bound holds for exact rank; a numerical rank may exceed it";
    return result;
  }

  Definition definition_of_gradient(const LayerSpectra& layer) const {
    auto result = shared_definition();
    result["matrix"] =
        "gradient of the mean loss in W (out x in), convolutions (out x in * kernel)";
    result["precision"] = "float32 gradient, float64 SVD";
    result["upper_bound"] = std::min({layer.out, layer.in, layer.columns});
    return result;
  }

  Definition definition_of_input(const LayerSpectra& layer) const {
    auto result = shared_definition();
    result["matrix"] = "input A (in x position) of the layer, convolutions unfolded to patches";
    result["columns"] = layer.columns;
    result["precision"] = "float32 forward, float64 Gram matrix";
    result["upper_bound"] = std::min(layer.in, layer.columns);
    return result;
  }

  std::string loss_;
  double temperature_;
  double gamma_ = 1e-3;
  Split split_ = Split::train;
  int64_t samples_ = 0;
  std::vector<LayerSpectra> layers_;  // in order of execution
};

const bool gradient_rank_registered = measures().add(
    "gradient_rank",
    {
        .summary = "numerical rank of each layer's gradient beside that of its input",
        .reference = "Unpacking Softmax, section 3.1, equation 3 and Figure 4",
        .make =
            [](const MeasureContext& context, Settings& settings) {
              return std::make_unique<GradientRank>(context, settings);
            },
    });

}  // namespace
}  // namespace kelvin
