#include <ATen/Parallel.h>
#include <torch/types.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/core/text.h"
#include "kelvin/measures/feature_spectrum.h"
#include "kelvin/measures/measure.h"
#include "kelvin/measures/spectrum_plan.h"
#include "kelvin/measures/spectrum_readings.h"
#include "kelvin/ops/layer_matrices.h"
#include "kelvin/ops/parallel_for.h"

namespace kelvin {
namespace {

constexpr int64_t kCurvePoints = 25;  // of the curve over gamma, from 1e-4 to 1e-1

struct LayerSpectrumOptions {
  double gamma = 1e-3;
  std::string protocol = "sketch";
  SpectrumOptions spectrum;
  bool enlarge = false;  // sketches that are too small to be reliable
  int64_t top = 50;      // singular values among the readings; all are among the curves
};

// One layer; its spectrum is accumulated in one of the passes.
struct SeenLayer {
  std::string name;
  FeatureSpectrum spectrum;
  int64_t pass = 0;
  torch::Tensor pilot = {};  // rows of the sample until there are anchors
  int64_t pilot_rows = 0;
  std::optional<SpectrumValues> values = {};  // once a pass is over
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
  check_gamma(settings, options.gamma);
  options.spectrum.protocol = protocol_of(options.protocol, settings.full_name("protocol"));
  check(options.spectrum.sketch >= 2, settings.full_name("sketch"), ": must be at least 2, got ",
        options.spectrum.sketch);
  check(options.spectrum.anchors >= 0 && options.spectrum.anchors < options.spectrum.sketch,
        settings.full_name("anchors"), ": must be from 0 to below sketch, ",
        options.spectrum.sketch, ", got ", options.spectrum.anchors);
  check(options.top >= 0, settings.full_name("top"), ": must not be below 0, got ", options.top);
  return options;
}

void for_each_in_groups(int64_t count, int64_t at_once, const std::function<void(int64_t)>& work) {
  for (int64_t first = 0; first < count; first += at_once) {
    parallel_for_tasks(std::min(at_once, count - first), [&](int64_t i) { work(first + i); });
  }
}

// Spectrum and ranks of what every layer hands on, over the test split.
class LayerSpectrum : public Measure {
 public:
  LayerSpectrum(const MeasureContext& context, Settings& settings)
      : context_(context), options_(read_options(settings)) {}

  Needs needs() const override {
    const bool is_anchored =
        options_.spectrum.protocol == SpectrumProtocol::sketch && options_.spectrum.anchors > 0;
    return {.layers = true, .sample = is_anchored ? pilots() : 0};
  }

  void see_sample(const Record& record) override {
    add_new_layers(record);
    std::vector<SeenLayer*> complete;
    for (const auto& recorded : record.layers) {
      auto& layer = find(recorded.name);
      if (!layer.spectrum.wants_anchors() || layer.spectrum.anchors() > 0) continue;
      add_to_pilot(layer, feature_rows(recorded.output));
      if (layer.pilot_rows == pilots()) complete.push_back(&layer);
    }
    for_each_in_groups(static_cast<int64_t>(complete.size()),
                       std::min(layers_at_once_, kSpectraAtOnce),
                       [&](int64_t i) { set_anchors(*complete[static_cast<size_t>(i)]); });
  }

  void update(const Record& record) override {
    if (record.is_ood() || record.split != Split::test) return;
    check(!record.layers.empty(), "layer_spectrum: the record must have layers, has none");
    add_new_layers(record);
    std::vector<const LayerRecord*> due;
    for (const auto& recorded : record.layers) {
      if (find(recorded.name).pass == pass_) due.push_back(&recorded);
    }
    // A layer is one core's: products of few samples would wait for each other more than multiply.
    const auto count = static_cast<int64_t>(due.size());
    const bool may_use_all_cores = layers_at_once_ >= at::get_num_threads();
    const auto at_once = may_use_all_cores ? count : layers_at_once_;
    for_each_in_groups(count, is_enlarged_ ? 1 : at_once, [&](int64_t i) {
      const auto& recorded = *due[static_cast<size_t>(i)];
      add_rows(find(recorded.name), feature_rows(recorded.output));
    });
  }

  bool wants_another_pass() override {
    compute_values();
    if (!has_further_passes() && options_.enlarge) enlarge_unreliable();
    if (!has_further_passes()) return false;
    for (auto& layer : layers_) {
      if (layer.values.has_value()) layer.spectrum.release();
    }
    ++pass_;
    return true;
  }

  void merge(const Measure& other) override {
    const auto& theirs = static_cast<const LayerSpectrum&>(other);
    if (layers_.empty()) {
      layers_ = theirs.layers_;
      for (auto& layer : layers_) {
        if (layer.pilot.defined()) layer.pilot = layer.pilot.clone();
      }
      pass_ = theirs.pass_;
      layers_at_once_ = theirs.layers_at_once_;
      return;
    }
    for (const auto& layer : theirs.layers_) {
      auto& ours = find(layer.name);
      if (layer.spectrum.rows() == 0) continue;
      if (ours.pilot_rows > 0) set_anchors(ours);
      ours.spectrum.merge(layer.spectrum);
      ours.values.reset();
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
    for (const auto& layer : layers_) {
      for (auto& reading : spectrum_readings(values_of(layer), options_.gamma, options_.top)) {
        readings.push_back(std::move(reading));
      }
    }
    return readings;
  }

  // Under names that tell protocols apart.
  NamedTensors curves() const override {
    check_shown();
    NamedTensors curves;
    const auto prefix = options_.protocol == "sketch" ? "" : options_.protocol + "_";
    const auto gammas = torch::logspace(-4, -1, kCurvePoints, 10, torch::kFloat64);
    curves[prefix + "rank_curve_gamma"] = gammas;
    for (const auto& layer : layers_) {
      const auto values = values_of(layer);
      auto ranks = torch::empty({kCurvePoints}, torch::kFloat64);
      for (int64_t i = 0; i < kCurvePoints; ++i) {
        ranks[i] = static_cast<double>(covariance_rank(values, gammas[i].item<double>()));
      }
      curves[c10::str(prefix, "spectrum/", layer.name)] = values.values.corrected;
      curves[c10::str(prefix, "rank_curve/", layer.name)] = ranks;
    }
    return curves;
  }

  int64_t memory(const Record& example, int64_t /*samples*/) const override {
    return planned(example).peak();
  }

 private:
  SpectrumLimits limits() const {
    return {.memory = context_.memory, .samples = context_.test_samples};
  }

  int64_t pilots() const { return pilot_samples(limits()); }

  SpectrumPlan planned(const Record& record) const {
    std::vector<int64_t> features;
    for (const auto& layer : record.layers) features.push_back(feature_rows(layer.output).size(1));
    return plan_spectra(features, options_.spectrum, limits());
  }

  // Of the layers that this pass was for.
  void compute_values() {
    std::vector<SeenLayer*> due;
    for (auto& layer : layers_) {
      if (layer.pass == pass_ && layer.spectrum.rows() > 0) due.push_back(&layer);
    }
    // Enlarged ones take all the memory there is.
    const auto at_once = is_enlarged_ ? 1 : std::min(layers_at_once_, kSpectraAtOnce);
    for_each_in_groups(static_cast<int64_t>(due.size()), at_once, [&](int64_t i) {
      auto& layer = *due[static_cast<size_t>(i)];
      layer.values = layer.spectrum.values();
    });
  }

  SeenLayer& find(const std::string& name) {
    const auto found = std::find_if(layers_.begin(), layers_.end(),
                                    [&](const auto& layer) { return layer.name == name; });
    check(found != layers_.end(), "layer_spectrum: layer '", name, "' was not seen before");
    return *found;
  }

  void add_new_layers(const Record& record) {
    if (!layers_.empty()) return;
    const auto plan = planned(record);
    layers_at_once_ = plan.at_once;
    for (size_t i = 0; i < record.layers.size(); ++i) {
      const auto& recorded = record.layers[i];
      const auto dims = feature_rows(recorded.output).size(1);
      check(plan.held + plan.bytes[i] <= context_.memory, "layer_spectrum: layer '", recorded.name,
            "' with ", dims, " features needs ", byte_text(plan.held + plan.bytes[i]),
            " for protocol ", options_.protocol, ", measure.memory allows ",
            byte_text(context_.memory));
      const auto seed = derive_seed(context_.seed, "sketch " + recorded.name);
      layers_.push_back({.name = recorded.name,
                         .spectrum = FeatureSpectrum(dims, plan.options, seed),
                         .pass = plan.passes[i]});
    }
  }

  static void check_finite(const SeenLayer& layer, const torch::Tensor& rows) {
    // The sum of a row is not finite as soon as one number is not.
    check(torch::isfinite(rows.sum(1)).all().item<bool>(), "layer_spectrum: layer '", layer.name,
          "' must be finite, has a NaN or an infinity");
  }

  void add_to_pilot(SeenLayer& layer, const torch::Tensor& rows) const {
    if (!layer.pilot.defined()) layer.pilot = torch::empty({pilots(), rows.size(1)}, kPilotType);
    const auto count = std::min(rows.size(0), pilots() - layer.pilot_rows);
    layer.pilot.narrow(0, layer.pilot_rows, count).copy_(rows.narrow(0, 0, count));
    layer.pilot_rows += count;
  }

  void set_anchors(SeenLayer& layer) const {
    const auto sample = layer.pilot.narrow(0, 0, layer.pilot_rows);
    layer.pilot.reset();
    layer.pilot_rows = 0;
    check_finite(layer, sample);
    layer.spectrum.anchor_to(sample);
  }

  void add_rows(SeenLayer& layer, const torch::Tensor& rows) const {
    check(rows.size(1) == layer.spectrum.dims(), "layer_spectrum: layer '", layer.name,
          "' must have ", layer.spectrum.dims(), " features, has ", rows.size(1));
    if (layer.pilot_rows > 0) set_anchors(layer);
    const auto reduced = layer.spectrum.reduced(rows);
    // A sketch has part of every feature, so it is enough to check that.
    check_finite(layer, layer.spectrum.is_sketched() ? reduced : rows);
    layer.spectrum.add(reduced);
    layer.values.reset();
  }

  bool has_further_passes() const {
    return std::any_of(layers_.begin(), layers_.end(),
                       [this](const auto& layer) { return layer.pass > pass_; });
  }

  // Another pass, or several if the memory asks for it, with sketches of four times the size; with
  // the samples or features themselves where these are no more than that.
  void enlarge_unreliable() {
    constexpr int64_t kEnlargement = 4;
    const auto budget = spectrum_budget(limits());
    auto pass = pass_ + 1;
    int64_t used = 0;
    for (auto& layer : layers_) {
      if (rank_bounds(values_of(layer), options_.gamma).is_reliable) continue;
      auto larger = layer.spectrum.options();
      const auto dims = layer.spectrum.dims();
      larger.sketch = kEnlargement * layer.spectrum.width();
      if (std::min(dims, layer.spectrum.rows()) <= larger.sketch) {
        larger.protocol = SpectrumProtocol::exact;
      }
      // One at a time is added to and computed.
      const auto bytes = FeatureSpectrum::bytes_for(dims, layer.spectrum.rows(), larger);
      const auto at_work = std::max(bytes.working, bytes.adding);
      if (bytes.held + at_work > budget) continue;
      if (used > 0 && used + bytes.held + at_work > budget) {
        ++pass;
        used = 0;
      }
      used += bytes.held;
      layer.spectrum = layer.spectrum.enlarged(larger);
      is_enlarged_ = true;
      layer.values.reset();
      layer.pass = pass;
    }
  }

  void check_shown() const {
    const bool is_shown =
        !layers_.empty() && std::all_of(layers_.begin(), layers_.end(), [](const auto& layer) {
          return layer.values.has_value() || layer.spectrum.rows() > 0;
        });
    check(is_shown, "layer_spectrum: no records of the test split were shown");
  }

  LayerValues values_of(const SeenLayer& layer) const {
    const auto& spectrum = layer.spectrum;
    return {.layer = layer.name,
            .protocol = options_.protocol,
            .values = layer.values ? *layer.values : spectrum.values(),
            .samples = spectrum.rows(),
            .features = spectrum.dims(),
            .width = spectrum.width(),
            .anchors = spectrum.anchors(),
            .is_sketched = spectrum.is_sketched(),
            .has_rounded_anchors = spectrum.has_rounded_anchors()};
  }

  MeasureContext context_;
  LayerSpectrumOptions options_;
  std::vector<SeenLayer> layers_;  // in order of execution
  int64_t pass_ = 0;
  int64_t layers_at_once_ = 1;
  bool is_enlarged_ = false;
};

const bool layer_spectrum_registered = measures().add(
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
