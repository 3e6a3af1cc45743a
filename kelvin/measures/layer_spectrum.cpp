#include <torch/types.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "kelvin/core/byte_text.h"
#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/math/layer_matrices.h"
#include "kelvin/math/spectrum.h"
#include "kelvin/measures/feature_spectrum.h"
#include "kelvin/measures/measure.h"
#include "kelvin/measures/rank_readings.h"

namespace kelvin {
namespace {

constexpr int64_t kPilotSamples = 512;  // that a sketch's anchors come from
constexpr int kCurvePoints = 25;        // of the curve over gamma, from 1e-4 to 1e-1
constexpr int64_t kEnlargement = 4;     // of a sketch that the rank fills to more than a quarter

struct LayerSpectrumOptions {
  double gamma = 1e-3;
  std::string protocol = "sketch";
  SpectrumOptions spectrum;
  bool enlarge = false;  // sketches that are too small for the rank
  int64_t top = 50;      // singular values among the readings; all are among the curves
};

// One layer; its spectrum is accumulated in one of the passes.
struct SeenLayer {
  std::string name;
  FeatureSpectrum spectrum;
  int64_t pass = 0;
  std::vector<torch::Tensor> pilot = {};  // rows of the sample until there are enough
  torch::Tensor values = {};              // singular values, once a pass is over
};

SpectrumProtocol protocol_of(const std::string& name, const std::string& key) {
  if (name == "sketch") return SpectrumProtocol::sketch;
  if (name == "tunnel") return SpectrumProtocol::tunnel;
  check(name == "exact", key, ": must be sketch, tunnel or exact, got '", name, "'");
  return SpectrumProtocol::exact;
}

LayerSpectrumOptions read_options(Settings& settings) {
  LayerSpectrumOptions options;
  settings.read("gamma", options.gamma);
  settings.read("protocol", options.protocol);
  settings.read("sketch", options.spectrum.sketch);
  settings.read("anchors", options.spectrum.anchors);
  settings.read("enlarge", options.enlarge);
  settings.read("top", options.top);
  check(options.gamma > 0 && options.gamma < 1, settings.full_name("gamma"),
        ": must be in (0, 1), got ", options.gamma);
  options.spectrum.protocol = protocol_of(options.protocol, settings.full_name("protocol"));
  check(options.spectrum.sketch >= 2, settings.full_name("sketch"), ": must be at least 2, got ",
        options.spectrum.sketch);
  check(options.spectrum.anchors >= 0 && options.spectrum.anchors < options.spectrum.sketch,
        settings.full_name("anchors"), ": must be from 0 to below sketch, ",
        options.spectrum.sketch, ", got ", options.spectrum.anchors);
  check(options.top >= 0, settings.full_name("top"), ": must not be below 0, got ", options.top);
  return options;
}

// Eigenvalues of the covariance above gamma times the largest.
int64_t covariance_rank(const torch::Tensor& singular_values, double gamma) {
  return numerical_rank(singular_values, std::sqrt(gamma));
}

// Spectrum and ranks of what every layer hands on, over the test split.
class LayerSpectrum : public Measure {
 public:
  LayerSpectrum(const MeasureContext& context, Settings& settings)
      : context_(context), options_(read_options(settings)) {}

  Needs needs() const override {
    const bool is_anchored =
        options_.spectrum.protocol == SpectrumProtocol::sketch && options_.spectrum.anchors > 0;
    return {.layers = true, .sample = is_anchored ? kPilotSamples : 0};
  }

  void see_sample(const Record& record) override {
    add_new_layers(record);
    for (const auto& recorded : record.layers) {
      auto& layer = find(recorded.name);
      if (!layer.spectrum.wants_anchors() || layer.spectrum.anchors() > 0) continue;
      layer.pilot.push_back(feature_rows(recorded.output));
      int64_t rows = 0;
      for (const auto& part : layer.pilot) rows += part.size(0);
      if (rows >= kPilotSamples) set_anchors(layer);
    }
  }

  void update(const Record& record) override {
    if (record.is_ood() || record.split != Split::test) return;
    check(!record.layers.empty(), "layer_spectrum: the record must have layers, has none");
    add_new_layers(record);
    for (const auto& recorded : record.layers) {
      auto& layer = find(recorded.name);
      if (layer.pass != pass_) continue;
      if (!layer.pilot.empty()) set_anchors(layer);
      const auto rows = feature_rows(recorded.output);
      check(rows.size(1) == layer.spectrum.dims(), "layer_spectrum: layer '", layer.name,
            "' must have ", layer.spectrum.dims(), " features, has ", rows.size(1));
      check_finite(layer, rows);
      layer.spectrum.update(rows);
      layer.values = torch::Tensor();
    }
  }

  bool wants_another_pass() override {
    for (auto& layer : layers_) {
      if (layer.pass == pass_ && layer.spectrum.rows() > 0) {
        layer.values = layer.spectrum.singular_values();
      }
    }
    if (!has_further_passes() && options_.enlarge) enlarge_saturated();
    if (!has_further_passes()) return false;
    ++pass_;
    return true;
  }

  void merge(const Measure& other) override {
    const auto& theirs = static_cast<const LayerSpectrum&>(other);
    if (layers_.empty()) {
      layers_ = theirs.layers_;
      pass_ = theirs.pass_;
      return;
    }
    for (const auto& layer : theirs.layers_) {
      auto& ours = find(layer.name);
      if (layer.spectrum.rows() == 0) continue;
      ours.spectrum.merge(layer.spectrum);
      ours.values = torch::Tensor();
    }
  }

  NamedTensors state() const override {
    NamedTensors tensors;
    for (const auto& layer : layers_) {
      if (layer.spectrum.rows() == 0) continue;
      const auto parts = layer.spectrum.state();
      for (size_t i = 0; i < parts.size(); ++i) {
        tensors[layer.name + "/" + std::to_string(i)] = parts[i];
      }
    }
    return tensors;
  }

  Readings compute() const override {
    check_shown();
    Readings readings;
    for (const auto& layer : layers_) add_readings(readings, layer, values_of(layer));
    return readings;
  }

  NamedTensors curves() const override {
    check_shown();
    NamedTensors curves;
    std::vector<double> gammas;
    for (int i = 0; i < kCurvePoints; ++i) gammas.push_back(curve_gamma(i));
    curves["rank_curve_gamma"] = torch::tensor(gammas, torch::kFloat64);
    for (const auto& layer : layers_) {
      const auto values = values_of(layer);
      std::vector<double> ranks;
      for (const double gamma : gammas) {
        ranks.push_back(static_cast<double>(covariance_rank(values, gamma)));
      }
      curves["spectrum/" + layer.name] = values;
      curves["rank_curve/" + layer.name] = torch::tensor(ranks, torch::kFloat64);
    }
    return curves;
  }

  int64_t memory(const Record& example, int64_t samples) const override {
    int64_t total = 0;
    int64_t largest = 0;
    for (const auto& layer : example.layers) {
      const auto dims = feature_rows(layer.output).size(1);
      const auto bytes = bytes_for(dims, samples);
      total += bytes;
      largest = std::max(largest, bytes);
    }
    // More passes, if one cannot hold all.
    return std::min(total, std::max(largest, budget()));
  }

 private:
  // Other measures take their part.
  int64_t budget() const { return context_.memory / 4 * 3; }

  int64_t bytes_for(int64_t dims, int64_t samples) const {
    constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
    auto bytes = FeatureSpectrum::bytes_for(dims, samples, options_.spectrum);
    const bool is_sketched =
        options_.spectrum.protocol == SpectrumProtocol::sketch && dims > options_.spectrum.sketch;
    if (is_sketched && options_.spectrum.anchors > 0) bytes += kPilotSamples * dims * kFloat;
    return bytes;
  }

  SeenLayer& find(const std::string& name) {
    const auto found = std::find_if(layers_.begin(), layers_.end(),
                                    [&](const auto& layer) { return layer.name == name; });
    check(found != layers_.end(), "layer_spectrum: layer '", name, "' was not seen before");
    return *found;
  }

  // Layers in their order, to as few passes as the memory allows.
  void add_new_layers(const Record& record) {
    if (!layers_.empty()) return;
    int64_t used = 0;
    int64_t pass = 0;
    for (const auto& recorded : record.layers) {
      const auto dims = feature_rows(recorded.output).size(1);
      const auto bytes = bytes_for(dims, context_.test_samples);
      check(bytes <= context_.memory, "layer_spectrum: layer '", recorded.name, "' with ", dims,
            " features needs ", byte_text(bytes), " for protocol ", options_.protocol,
            ", measure.memory allows ", byte_text(context_.memory));
      if (used > 0 && used + bytes > budget()) {
        ++pass;
        used = 0;
      }
      used += bytes;
      layers_.push_back(
          {.name = recorded.name,
           .spectrum = FeatureSpectrum(dims, options_.spectrum,
                                       named_seed(context_.seed, "sketch " + recorded.name)),
           .pass = pass});
    }
  }

  static void check_finite(const SeenLayer& layer, const torch::Tensor& rows) {
    // The sum of squares of a row is not finite as soon as one number is not.
    check(torch::isfinite(rows.sum(1)).all().item<bool>(), "layer_spectrum: layer '", layer.name,
          "' must be finite, has a NaN or an infinity");
  }

  static void set_anchors(SeenLayer& layer) {
    const auto sample = torch::cat(layer.pilot);
    layer.pilot.clear();
    check_finite(layer, sample);
    layer.spectrum.anchor_to(sample.narrow(0, 0, std::min<int64_t>(kPilotSamples, sample.size(0))));
  }

  // How many directions a spectrum can tell apart without distorting them.
  static bool is_saturated(const SeenLayer& layer, int64_t rank) {
    return layer.spectrum.is_sketched() && kEnlargement * rank > layer.spectrum.width();
  }

  bool has_further_passes() const {
    return std::any_of(layers_.begin(), layers_.end(),
                       [this](const auto& layer) { return layer.pass > pass_; });
  }

  // Another pass, or several if the memory asks for it, with sketches of four times the size; with
  // the samples or features themselves where these are no more than that.
  void enlarge_saturated() {
    auto pass = pass_ + 1;
    int64_t used = 0;
    for (auto& layer : layers_) {
      if (!is_saturated(layer, covariance_rank(layer.values, options_.gamma))) continue;
      auto larger = layer.spectrum.options();
      const auto dims = layer.spectrum.dims();
      larger.sketch = kEnlargement * layer.spectrum.width();
      if (std::min(dims, layer.spectrum.rows()) <= larger.sketch) {
        larger.protocol = SpectrumProtocol::exact;
      }
      const auto bytes = FeatureSpectrum::bytes_for(dims, layer.spectrum.rows(), larger);
      if (bytes > budget()) continue;
      if (used > 0 && used + bytes > budget()) {
        ++pass;
        used = 0;
      }
      used += bytes;
      layer.spectrum = layer.spectrum.enlarged(larger);
      layer.pass = pass;
    }
  }

  void check_shown() const {
    const bool is_shown =
        !layers_.empty() && std::all_of(layers_.begin(), layers_.end(), [](const auto& layer) {
          return layer.values.defined() || layer.spectrum.rows() > 0;
        });
    check(is_shown, "layer_spectrum: no records of the test split were shown");
  }

  static torch::Tensor values_of(const SeenLayer& layer) {
    return layer.values.defined() ? layer.values : layer.spectrum.singular_values();
  }

  static double curve_gamma(int point) {
    return std::pow(10, -4 + 3.0 * point / (kCurvePoints - 1));
  }

  Definition definition(const SeenLayer& layer) const {
    const auto& spectrum = layer.spectrum;
    Definition result = {
        {"matrix", "output of the layer, samples x features"},
        {"tap", "after normalisation, residual add and activation"},
        {"centring", "each feature's mean over the samples removed"},
        {"features", spectrum.dims()},
        {"samples", spectrum.rows()},
        {"protocol", options_.protocol},
        {"precision", spectrum.is_sketched() ? "float32 forward and projection, float64 spectrum"
                                             : "float32 forward, float64 covariance"}};
    if (spectrum.is_sketched()) {
      const auto hashed = spectrum.width() - spectrum.anchors();
      result["sketch"] = spectrum.width();
      result["anchors"] = spectrum.anchors();
      // Of what the anchors do not hold.
      result["sketch_error"] = std::sqrt(0.5 / static_cast<double>(hashed));
    } else if (spectrum.width() < spectrum.dims()) {
      result["features_used"] = spectrum.width();
    }
    return result;
  }

  // A random map to k numbers changes the variance of what has rank r by factors between
  // (1 - sqrt(r / k))^2 and (1 + sqrt(r / k))^2.
  static std::array<int64_t, 2> rank_bounds(const SeenLayer& layer, const torch::Tensor& values,
                                            double gamma, int64_t upper_bound) {
    const auto rank = covariance_rank(values, gamma);
    const auto hashed = static_cast<double>(layer.spectrum.width() - layer.spectrum.anchors());
    const double change = std::sqrt(static_cast<double>(rank) / hashed);
    const double higher = std::min(0.5, gamma * std::pow(1 + change, 2));
    const double lower = gamma * std::pow(1 - std::min(change, 1.0), 2);
    const bool is_open = is_saturated(layer, rank) || lower <= 0;
    return {covariance_rank(values, higher),
            is_open ? upper_bound : std::min(upper_bound, covariance_rank(values, lower))};
  }

  void add_rank(Readings& readings, const SeenLayer& layer, const torch::Tensor& values,
                double gamma) const {
    auto meaning = definition(layer);
    const auto width =
        layer.spectrum.is_sketched() ? layer.spectrum.dims() : layer.spectrum.width();
    const auto upper_bound = std::min(layer.spectrum.rows() - 1, width);
    const auto rank = covariance_rank(values, gamma);
    meaning["matrix"] = "covariance of the layer's output, feature x feature";
    meaning["gamma"] = gamma;
    meaning["threshold"] = "gamma * largest eigenvalue";
    meaning["upper_bound"] = upper_bound;
    if (layer.spectrum.is_sketched()) {
      meaning["rank_bounds"] = rank_bounds(layer, values, gamma, upper_bound);
      meaning["is_lower_bound"] = is_saturated(layer, rank);
    }
    readings.push_back({.name = "covariance_rank",
                        .value = static_cast<double>(rank),
                        .layer = layer.name,
                        .split = "test",
                        .definition = meaning});
  }

  void add_readings(Readings& readings, const SeenLayer& layer, const torch::Tensor& values) const {
    add_rank(readings, layer, values, options_.gamma);
    for (const double gamma : {1e-2, 1e-3, 1e-4}) {
      if (gamma != options_.gamma) add_rank(readings, layer, values, gamma);
    }
    const Reading like{
        .name = "", .layer = layer.name, .split = "test", .definition = definition(layer)};
    auto numerical = like;
    numerical.name = "numerical_rank";
    numerical.value = static_cast<double>(numerical_rank(values, options_.gamma));
    numerical.definition["gamma"] = options_.gamma;
    numerical.definition["threshold"] = "gamma * sigma_1";
    numerical.definition["upper_bound"] =
        std::min(layer.spectrum.rows() - 1, layer.spectrum.width());
    readings.push_back(numerical);
    for (auto& reading : rank_readings(values, like)) readings.push_back(std::move(reading));
    for (int64_t i = 0; i < std::min(options_.top, values.size(0)); ++i) {
      auto value = like;
      value.name = "singular_value";
      value.value = values[i].item<double>();
      value.index = i;
      readings.push_back(value);
    }
  }

  MeasureContext context_;
  LayerSpectrumOptions options_;
  std::vector<SeenLayer> layers_;  // in order of execution
  int64_t pass_ = 0;
};

const bool registered = measures().add(
    "layer_spectrum",
    {
        .summary = "spectrum and ranks of every layer's output",
        .reference = "Unpacking Softmax, section 3.2; The tunnel effect, arXiv 2305.19753",
        .make =
            [](const MeasureContext& context, Settings& settings) {
              return std::make_unique<LayerSpectrum>(context, settings);
            },
    });

}  // namespace
}  // namespace kelvin
