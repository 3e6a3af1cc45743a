#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/measures/class_ranks.h"
#include "kelvin/measures/measure.h"
#include "kelvin/measures/sketched_sample.h"
#include "kelvin/measures/spectrum_readings.h"
#include "kelvin/numerics/class_means.h"
#include "kelvin/ops/layer_matrices.h"

namespace kelvin {
namespace {

constexpr const char* kStatisticsName = "class_statistics";

struct Options {
  double gamma = 1e-3;   // of the rank of a class
  int64_t sketch = 0;    // of the variances; 0: only where memory asks for it
  SampleOptions sample;  // of the ranks
  int64_t memory = 0;    // that sums over all features may take
};

constexpr int64_t kSketchIfNeeded = 2048;

int64_t features_of(const LayerRecord& layer) {
  return layer.output.numel() / layer.output.size(0);
}

// To how many numbers features are projected for the variances: to as many as there are, if sums of
// all features of all layers for each class fit.
int64_t sketch_size(const Record& record, const Options& options) {
  if (options.sketch > 0) return options.sketch;
  int64_t bytes = 0;
  int64_t widest = 0;
  for (const auto& layer : record.layers) {
    const auto dims = features_of(layer);
    bytes += ClassVariance::bytes(dims, dims, record.classes);
    widest = std::max(widest, dims);
  }
  return bytes <= options.memory ? widest : kSketchIfNeeded;
}

struct CountedLayer {
  std::string name;
  ClassVariance variance;
};

void check_statistics_labels(const Record& record) {
  if (record.labels.numel() == 0) return;
  const auto lowest = record.labels.min().item<int64_t>();
  const auto highest = record.labels.max().item<int64_t>();
  check(lowest >= 0 && highest < record.classes, kStatisticsName, ": labels must be in [0, ",
        record.classes, "), got ", lowest < 0 ? lowest : highest);
}

// Variance between and within the classes of every layer's features over the test split, and on a
// sample how many directions each class takes.
class ClassStatistics : public Measure {
 public:
  explicit ClassStatistics(const Options& options)
      : options_(options), sample_(kStatisticsName, options.sample) {}

  Needs needs() const override { return {.layers = true, .sample = options_.sample.samples}; }

  void see_sample(const Record& record) override {
    check_statistics_labels(record);
    classes_ = record.classes;
    sample_.add(record);
  }

  void update(const Record& record) override {
    if (record.is_ood() || record.split != Split::test) return;
    check(!record.layers.empty(), kStatisticsName, ": needs records of layers, got none");
    check_statistics_labels(record);
    rank_sample();
    for (size_t i = 0; i < record.layers.size(); ++i) {
      const auto& layer = record.layers[i];
      const auto rows = feature_rows(layer.output);
      if (i == layers_.size()) {
        const FeatureSketch sketch(rows.size(1), sketch_size(record, options_),
                                   derive_seed(options_.sample.seed, layer.name));
        layers_.push_back({.name = layer.name, .variance = {sketch, record.classes}});
      }
      auto& seen = layers_[i];
      check(seen.name == layer.name && seen.variance.dims() == rows.size(1), kStatisticsName,
            ": every batch must have the same layers; '", seen.name, "' of ", seen.variance.dims(),
            " features became '", layer.name, "' of ", rows.size(1));
      seen.variance.update(rows, record.labels);
      check(seen.variance.is_finite(), kStatisticsName, ": layer '", layer.name,
            "' must be finite, has a NaN or an infinity");
    }
  }

  void merge(const Measure& other) override {
    const auto& theirs = static_cast<const ClassStatistics&>(other);
    if (!ranks()) ranks_ = theirs.ranks();
    if (layers_.empty())
      layers_ = theirs.layers_;
    else if (!theirs.layers_.empty()) {
      for (size_t i = 0; i < layers_.size(); ++i) {
        layers_[i].variance.merge(theirs.layers_.at(i).variance);
      }
    }
  }

  NamedTensors state() const override {
    NamedTensors tensors;
    for (const auto& [name, variance] : layers_) {
      tensors[name + "/class_sums"] = variance.class_sums();
      tensors[name + "/class_counts"] = variance.class_counts();
      tensors[name + "/sums"] = variance.exact().sums();
      tensors[name + "/squares"] = variance.exact().squares();
    }
    if (const auto all = ranks()) {
      for (const auto& layer : all->layers) tensors[layer.name + "/ranks"] = layer.ranks.clone();
    }
    return tensors;
  }

  Readings compute() const override {
    check(!layers_.empty(), kStatisticsName, ": no records of the test split were shown");
    Readings readings;
    for (const auto& layer : layers_) {
      readings.push_back(reading(layer, "between_class_variance", layer.variance.parts().between,
                                 "sum_c n_c |mu_c - mu|^2 / N", "mean of all samples"));
    }
    for (const auto& layer : layers_) {
      readings.push_back(reading(layer, "within_class_variance", layer.variance.parts().within,
                                 "sum |x - mu_c|^2 / N", "mean of the class"));
    }
    for (const auto& layer : layers_) {
      const auto [between, within] = layer.variance.parts();
      if (between == 0) continue;  // of one class, or of features that are all alike
      readings.push_back(reading(layer, "class_variance_ratio", within / between,
                                 "within-class over between-class variance",
                                 "mean of the class, and of all samples"));
    }
    if (const auto all = ranks()) {
      for (auto& each : class_rank_readings(*all)) readings.push_back(std::move(each));
    }
    return readings;
  }

  int64_t memory(const Record& example, int64_t samples) const override {
    auto bytes = SketchedSample::bytes(example, samples, options_.sample);
    const auto sketch = sketch_size(example, options_);
    for (const auto& layer : example.layers) {
      const auto dims = features_of(layer);
      bytes += ClassVariance::bytes(dims, std::min(dims, sketch), example.classes);
    }
    return bytes;
  }

 private:
  static Reading reading(const CountedLayer& layer, const char* name, double value,
                         const char* formula, const char* centring) {
    const auto& variance = layer.variance;
    Definition definition = {{"formula", formula},
                             {"matrix", "features of the layer (sample x feature)"},
                             {"tap", "after normalisation, residual add and activation"},
                             {"centring", centring},
                             {"samples", variance.samples()},
                             {"features", variance.dims()},
                             {"precision", "float32 forward, float64 sums"}};
    if (variance.is_estimated()) {
      definition["projected_to"] = variance.width();
      definition["estimated"] = "total variance exactly, the classes' shares of it by projection";
      definition["relative_standard_error"] =
          std::sqrt(2.0 / static_cast<double>(variance.width()));
    }
    return {.name = name,
            .value = value,
            .layer = layer.name,
            .split = "test",
            .definition = definition};
  }

  // The sample is complete once the stream begins: only the ranks are kept of it.
  void rank_sample() {
    ranks_ = ranks();
    sample_.clear();
  }

  std::optional<ClassRanks> ranks() const {
    if (ranks_ || sample_.is_empty()) return ranks_;
    return class_ranks(sample_, classes_, options_.gamma);
  }

  Options options_;
  std::vector<CountedLayer> layers_;  // in order of execution
  SketchedSample sample_;             // until the first update
  int64_t classes_ = 0;
  std::optional<ClassRanks> ranks_;
};

std::unique_ptr<Measure> make_class_statistics(const MeasureContext& context, Settings& settings) {
  Options options{.sample = {.seed = context.seed}, .memory = context.memory / 8};
  settings.read("gamma", options.gamma);
  settings.read("sketch", options.sketch);
  settings.read("samples", options.sample.samples);
  settings.read("sample_sketch", options.sample.sketch);
  check_gamma(settings, options.gamma);
  check(options.sketch >= 0, settings.full_name("sketch"), ": must not be below 0, got ",
        options.sketch);
  check(options.sample.samples >= 2, settings.full_name("samples"), ": must be at least 2, got ",
        options.sample.samples);
  check(options.sample.sketch >= 1, settings.full_name("sample_sketch"),
        ": must be at least 1, got ", options.sample.sketch);
  return std::make_unique<ClassStatistics>(options);
}

const bool class_statistics_registered = measures().add(
    kStatisticsName,
    {
        .summary = "variance of features between and within classes, and ranks of classes",
        .reference = "The tunnel effect, arXiv 2305.19753",
        .make = make_class_statistics,
    });

}  // namespace
}  // namespace kelvin
