#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "kelvin/core/check.h"
#include "kelvin/measures/measure.h"
#include "kelvin/measures/sketched_sample.h"

namespace kelvin {
namespace {

constexpr const char* kSimilarityName = "layer_similarity";

struct ComparedLayer {
  std::string name;
  int64_t features = 0;
  int64_t width = 0;       // after projection
  bool is_varied = false;  // not the same for all samples
};

struct Similarities {
  std::vector<ComparedLayer> layers;  // in order of execution
  int64_t samples = 0;
  torch::Tensor cka;  // [layers, layers]; 0 with layers that are not varied
};

// The Frobenius norm that products of samples have without the sketch.  Hashing leaves a product
// what it is on average, but adds to its square: 1 / width of the product of squared lengths and of
// itself, times the fraction of pairs of features that may meet.  Products of two layers, hashed
// differently, get nothing added.
double norm_without_sketch(const torch::Tensor& gram, const FeatureSketch& sketch) {
  const auto squares = gram.square().sum().item<double>();
  if (sketch.is_exact()) return std::sqrt(squares);
  const auto width = static_cast<double>(sketch.width());
  const auto added = (1 - width / static_cast<double>(sketch.dims())) / width;
  const auto trace = gram.trace().item<double>();
  // As little as samples have whose variance is the same in all directions they can take.
  const auto least = trace * trace / static_cast<double>(gram.size(0) - 1);
  return std::sqrt(std::max(least, (squares - added * trace * trace) / (1 + added)));
}

// [samples, samples] products of the centred rows over their Frobenius norm; of rows that are all
// alike, zeros.
torch::Tensor normalised_gram(const torch::Tensor& rows, const FeatureSketch& sketch) {
  const auto doubles = rows.to(torch::kFloat64);
  const auto centred = doubles - doubles.mean(0, /*keepdim=*/true);
  const auto gram = centred.matmul(centred.t());
  const auto norm = norm_without_sketch(gram, sketch);
  return norm > 0 ? gram / norm : gram;
}

Similarities similarities_of(const SketchedSample& sample) {
  Similarities found{.layers = {}, .samples = sample.size(), .cka = {}};
  std::vector<torch::Tensor> grams;
  for (const auto& layer : sample.layers()) {
    grams.push_back(normalised_gram(layer.rows(), layer.sketch).flatten());
    found.layers.push_back({.name = layer.name,
                            .features = layer.sketch.dims(),
                            .width = layer.sketch.width(),
                            .is_varied = grams.back().any().item<bool>()});
  }
  const auto count = static_cast<int64_t>(grams.size());
  found.cka = torch::zeros({count, count}, torch::kFloat64);
  for (int64_t i = 0; i < count; ++i) {
    found.cka[i][i] = found.layers[static_cast<size_t>(i)].is_varied ? 1.0 : 0.0;
    for (int64_t j = 0; j < i; ++j) {
      const auto product = grams[static_cast<size_t>(i)].dot(grams[static_cast<size_t>(j)]);
      found.cka[i][j] = product.clamp_max(1);
      found.cka[j][i] = found.cka[i][j];
    }
  }
  return found;
}

Reading cka_of(const Similarities& found, size_t i, size_t j, const char* which) {
  const auto& layer = found.layers[i];
  const auto& other = found.layers[j];
  Definition definition = {{"formula", "|X^T Y|^2 / (|X^T X| |Y^T Y|), Frobenius norms"},
                           {"matrix", "features X, Y of two layers (sample x feature)"},
                           {"centring", "mean of each feature"},
                           {"with", which},
                           {"other_layer", other.name},
                           {"samples", found.samples},
                           {"which", "a fixed random sample of the test split"},
                           {"features", layer.features},
                           {"projected_to", layer.width},
                           {"precision", "float32 forward and projection, float64 Gram matrices"}};
  if (layer.width < layer.features || other.width < other.features) {
    definition["correction"] = "norms without what the projection adds to them on average";
  }
  return {.name = "cka",
          .value = found.cka[static_cast<int64_t>(i)][static_cast<int64_t>(j)].item<double>(),
          .layer = layer.name,
          .split = "test",
          .definition = definition};
}

// Of neighbours that both vary; none if there are no such.
std::optional<Reading> mean_of(const Readings& neighbours, const Similarities& found) {
  if (neighbours.empty()) return std::nullopt;
  double sum = 0;
  for (const auto& reading : neighbours) sum += reading.value;
  auto mean = neighbours.front();
  mean.name = "cka_neighbours";
  mean.value = sum / static_cast<double>(neighbours.size());
  mean.layer.clear();
  for (const char* key : {"other_layer", "features", "projected_to"}) mean.definition.erase(key);
  mean.definition["mean_over"] = "neighbouring layers";
  mean.definition["pairs"] = neighbours.size();
  mean.definition["layers"] = found.layers.size();
  return mean;
}

Readings readings_of(const Similarities& found) {
  Readings readings;
  Readings neighbours;
  const auto& layers = found.layers;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i].is_varied) continue;
    if (layers.back().is_varied) {
      readings.push_back(cka_of(found, i, layers.size() - 1, "the last layer"));
    }
    if (i + 1 < layers.size() && layers[i + 1].is_varied) {
      neighbours.push_back(cka_of(found, i, i + 1, "the next layer"));
    }
  }
  readings.insert(readings.end(), neighbours.begin(), neighbours.end());
  if (const auto mean = mean_of(neighbours, found)) readings.push_back(*mean);
  return readings;
}

// How alike what the layers hand on is, for all pairs of layers, on a fixed sample: linear CKA,
// which ignores rotations and the scale of the features.
class LayerSimilarity : public Measure {
 public:
  explicit LayerSimilarity(const SampleOptions& options)
      : options_(options), sample_(kSimilarityName, options) {}

  Needs needs() const override { return {.layers = true, .sample = options_.samples}; }

  void see_sample(const Record& record) override { sample_.add(record); }

  // The sample is complete: only the result is kept of it.
  void update(const Record& /*record*/) override {
    found_ = found();
    sample_.clear();
  }

  void merge(const Measure& other) override {
    if (!found()) found_ = static_cast<const LayerSimilarity&>(other).found();
  }

  NamedTensors state() const override {
    const auto all = found();
    if (!all) return {};
    return {{"cka", all->cka.clone()}};
  }

  Readings compute() const override {
    const auto all = found();
    check(all.has_value(), kSimilarityName, ": no sample of the test split was shown");
    return readings_of(*all);
  }

  NamedTensors curves() const override { return state(); }

  int64_t memory(const Record& example, int64_t samples) const override {
    const auto rows = std::min(samples, options_.samples);
    const auto layers = static_cast<int64_t>(example.layers.size());
    const auto numbers = layers * rows * rows + layers * layers;
    return SketchedSample::bytes(example, samples, options_) +
           numbers * static_cast<int64_t>(sizeof(double));
  }

 private:
  std::optional<Similarities> found() const {
    if (found_ || sample_.is_empty()) return found_;
    return similarities_of(sample_);
  }

  SampleOptions options_;
  SketchedSample sample_;  // until the first update
  std::optional<Similarities> found_;
};

std::unique_ptr<Measure> make_layer_similarity(const MeasureContext& context, Settings& settings) {
  SampleOptions options{.seed = context.seed};
  settings.read("samples", options.samples);
  settings.read("sketch", options.sketch);
  check(options.samples >= 2, settings.full_name("samples"), ": must be at least 2, got ",
        options.samples);
  check(options.sketch >= 1, settings.full_name("sketch"), ": must be at least 1, got ",
        options.sketch);
  return std::make_unique<LayerSimilarity>(options);
}

const bool layer_similarity_registered =
    measures().add(kSimilarityName,
                   {
                       .summary = "linear CKA between all pairs of layers on a fixed sample",
                       .reference = "Similarity of neural network representations revisited, arXiv "
                                    "1905.00414",
                       .make = make_layer_similarity,
                   });

}  // namespace
}  // namespace kelvin
