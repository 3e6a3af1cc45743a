#include "kelvin/measures/collapse_sums.h"

#include <algorithm>
#include <limits>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/ops/layer_matrices.h"

namespace kelvin {
namespace {

constexpr int64_t kLeastWidth = 256;  // that features are projected to

int64_t bytes_of_sums(int64_t classes, int64_t width) {
  return classes * width * static_cast<int64_t>(sizeof(double));
}

}  // namespace

std::vector<CollapseRows> collapse_rows(const Record& record) {
  std::vector<CollapseRows> all;
  if (record.features.defined()) all.push_back({"", feature_rows(record.features)});
  for (const auto& layer : record.layers) all.push_back({layer.name, feature_rows(layer.output)});
  return all;
}

std::string collapse_place(const std::string& layer) {
  return layer.empty() ? "the classifier's input" : "layer '" + layer + "'";
}

int64_t collapse_width_limit(const Record& record, int64_t memory) {
  std::vector<int64_t> widths;
  for (const auto& layer : record.layers) widths.push_back(feature_rows(layer.output).size(1));
  const auto total = [&](int64_t limit) {
    int64_t sum = 0;
    for (const auto width : widths) sum += bytes_of_sums(record.classes, std::min(limit, width));
    return sum;
  };
  if (total(std::numeric_limits<int64_t>::max()) <= memory / 3) {
    return std::numeric_limits<int64_t>::max();
  }
  auto limit = *std::max_element(widths.begin(), widths.end());
  while (limit / 2 >= kLeastWidth && total(limit) > memory / 3) limit /= 2;
  return limit;
}

int64_t collapse_bytes(const Record& record, int64_t memory) {
  const auto limit = collapse_width_limit(record, memory);
  int64_t total = 0;
  int64_t largest = 0;
  for (const auto& [layer, rows] : collapse_rows(record)) {
    const auto width = layer.empty() ? rows.size(1) : std::min(limit, rows.size(1));
    total += bytes_of_sums(record.classes, width);
    largest = std::max(largest, bytes_of_sums(record.classes, width));
  }
  // Sums are there twice while a batch is added or means are computed from them, layer by layer.
  return total + 2 * largest;
}

void CollapseSums::start_second_pass(double cutoff) {
  spread.emplace(ClassCentres(*sums), cutoff);
  sums.reset();
}

void CollapseSums::merge(const CollapseSums& other) {
  check(layer == other.layer && sketch.equals(other.sketch),
        "neural_collapse: can merge only measures of the same layers");
  if (spread) {
    spread->merge(*other.spread);
    own.add(other.own);
    test.add(other.test);
  } else {
    sums->merge(*other.sums);
  }
}

void CollapseSums::add_state(NamedTensors& tensors) const {
  if (spread) {
    tensors[layer + "/class_means"] = spread->centres().means();
    tensors[layer + "/class_counts"] = spread->counts();
    tensors[layer + "/class_squares"] = spread->squares();
    tensors[layer + "/within"] = spread->products();
    tensors[layer + "/mismatches"] = torch::tensor(
        {own.from_logits, own.from_products, test.samples, test.from_logits, test.from_products});
  } else {
    tensors[layer + "/class_sums"] = sums->sums();
    tensors[layer + "/class_counts"] = sums->counts();
  }
}

std::vector<CollapseSums> collapse_sums(const Record& record, int64_t memory, uint64_t seed) {
  const auto limit = collapse_width_limit(record, memory);
  std::vector<CollapseSums> all;
  for (const auto& [layer, rows] : collapse_rows(record)) {
    const FeatureSketch sketch(rows.size(1), layer.empty() ? rows.size(1) : limit,
                               derive_seed(seed, "collapse " + layer));
    all.push_back(
        {.layer = layer, .sketch = sketch, .sums = ClassSums(record.classes, sketch.width())});
  }
  return all;
}

}  // namespace kelvin
