#include "kelvin/measures/input_gram.h"

#include <torch/types.h>

#include <algorithm>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/ops/layer_matrices.h"

namespace kelvin {
namespace {

constexpr int64_t kNumbersAtOnce = int64_t{1} << 22;  // of gathered patches

// How many columns of A each sample has.
int64_t positions_of(const LayerRecord& record) {
  return input_matrix(record.weight, record.input.narrow(0, 0, 1),
                      {.stride = record.stride, .padding = record.padding})
      .size(1);
}

// Which columns of A are used, of `count` samples from the `first` of the whole sample on.
torch::Tensor used_columns(int64_t first, int64_t count, int64_t positions, int64_t stride) {
  std::vector<int64_t> columns;
  for (int64_t i = 0; i < count; ++i) {
    for (auto position = (first + i) % stride; position < positions; position += stride) {
      columns.push_back(i * positions + position);
    }
  }
  return torch::tensor(columns, torch::kInt64);
}

// Those columns of A, as rows.  Of a convolution only their patches are gathered: unfolding whole
// maps would take far longer than what is done with a few of their positions.
torch::Tensor rows_of(const LayerRecord& record, const torch::Tensor& input,
                      const torch::Tensor& columns) {
  const auto& weight = record.weight;
  if (weight.dim() == 2) return input.reshape({-1, input.size(-1)}).index_select(0, columns);
  const auto edge = record.padding;
  // [samples, height, width, in, kernel height, kernel width], without a copy
  const auto patches = torch::constant_pad_nd(input, {edge, edge, edge, edge})
                           .unfold(2, weight.size(2), record.stride)
                           .unfold(3, weight.size(3), record.stride)
                           .permute({0, 2, 3, 1, 4, 5});
  const auto row = columns.div(patches.size(2), "floor");
  return patches
      .index({row.div(patches.size(1), "floor"), row.remainder(patches.size(1)),
              columns.remainder(patches.size(2))})
      .flatten(1);
}

int64_t bytes_of_gram(const LayerRecord& layer) {
  const auto dims = weight_matrix(layer.weight).size(1);
  return dims * dims * static_cast<int64_t>(sizeof(double));
}

}  // namespace

InputGrams::InputGrams(std::string measure, Settings& settings) : measure_(std::move(measure)) {
  settings.read("samples", samples_);
  settings.read("positions", positions_);
  check(samples_ >= 1, settings.full_name("samples"), ": must be at least 1, got ", samples_);
  check(positions_ >= samples_, settings.full_name("positions"),
        ": must be at least one per sample (", samples_, "), got ", positions_);
}

int64_t InputGrams::see(const Record& record) {
  check(!record.layers.empty(), measure_, ": records must have layers, got none");
  if (last_logits_.defined() && record.logits.is_same(last_logits_)) return last_count_;
  last_logits_ = record.logits;
  last_count_ = 0;
  if (wanted() == 0) return 0;
  if (layers_.empty()) begin(record);
  check(record.layers.size() == layers_.size(), measure_, ": records must have ", layers_.size(),
        " layers as the first has, got ", record.layers.size());
  const auto count = std::min(wanted(), record.layers[0].input.size(0));
  for (size_t i = 0; i < layers_.size(); ++i) add(layers_[i], record.layers[i], count);
  seen_ += count;
  last_count_ = count;
  return count;
}

void InputGrams::begin(const Record& record) {
  for (const auto& layer : record.layers) {
    const auto weight = weight_matrix(layer.weight.detach())
                            .to(torch::kFloat64, /*non_blocking=*/false, /*copy=*/true);
    check(torch::isfinite(weight).all().item<bool>(), measure_, ": weight of layer '", layer.name,
          "' must be finite, has a NaN or an infinity");
    layers_.push_back({.name = layer.name,
                       .weight = weight,
                       .gram = GramAccumulator(weight.size(1)),
                       .stride = stride_of(layer)});
  }
}

int64_t InputGrams::stride_of(const LayerRecord& record) const {
  const auto per_sample = positions_ / samples_;
  return (positions_of(record) + per_sample - 1) / per_sample;
}

void InputGrams::add(LayerInputs& layer, const LayerRecord& record, int64_t count) const {
  check(record.name == layer.name, measure_, ": layer '", layer.name,
        "' must come in the same place in all records, got '", record.name, "'");
  check(record.input.size(0) >= count, measure_, ": input of layer '", layer.name,
        "' must have a row for each of ", count, " samples, has ", record.input.size(0));
  // The sum of a sample is not finite as soon as one number is not.
  check(torch::isfinite(record.input.narrow(0, 0, count).flatten(1).sum(1)).all().item<bool>(),
        measure_, ": input of layer '", layer.name, "' must be finite, has a NaN or an infinity");
  const auto positions = positions_of(record);
  const auto used_of_each = (positions + layer.stride - 1) / layer.stride;
  const auto at_once = std::max<int64_t>(1, kNumbersAtOnce / (layer.weight.size(1) * used_of_each));
  for (int64_t begin = 0; begin < count; begin += at_once) {
    const auto size = std::min(at_once, count - begin);
    const auto columns = used_columns(seen_ + begin, size, positions, layer.stride);
    layer.gram.update(rows_of(record, record.input.narrow(0, begin, size).detach(), columns));
  }
}

void InputGrams::merge(const InputGrams& other) {
  if (!layers_.empty()) return;
  layers_ = other.layers_;
  seen_ = other.seen_;
}

NamedTensors InputGrams::state() const {
  NamedTensors tensors;
  for (const auto& layer : layers_) {
    tensors[layer.name + "/weight"] = layer.weight;
    tensors[layer.name + "/input_gram"] = layer.input_gram();
    tensors[layer.name + "/columns"] = torch::tensor(layer.columns(), torch::kInt64);
  }
  return tensors;
}

Definition InputGrams::definition(const LayerInputs& layer) const {
  return {{"weight", "W (out x in), convolutions as (out x in * kernel)"},
          {"input", "A (in x position), convolutions unfolded to patches"},
          {"centring", "none"},
          {"samples", seen_},
          {"which", "a fixed random sample of the test split"},
          {"positions", positions_},
          {"position_stride", layer.stride},
          {"columns", layer.columns()},
          {"precision", "float32 forward, float64 Gram matrix"}};
}

int64_t InputGrams::memory(const std::string& measure, const Record& example) const {
  if (measure != measure_) return 0;
  int64_t bytes = 0;
  int64_t largest = 0;
  for (const auto& layer : example.layers) {
    bytes += bytes_of_gram(layer) + layer.weight.numel() * static_cast<int64_t>(sizeof(double));
    largest = std::max(largest, bytes_of_gram(layer));
  }
  // An update makes a new sum beside the old one.
  return bytes + largest;
}

std::shared_ptr<InputGrams> SharedInputGrams::find(const std::string& measure, Settings& settings) {
  auto made = std::make_shared<InputGrams>(measure, settings);
  for (const auto& each : all_) {
    if (each->samples() == made->samples() && each->positions() == made->positions()) return each;
  }
  all_.push_back(made);
  return made;
}

std::shared_ptr<InputGrams> input_grams_of(const MeasureContext& context,
                                           const std::string& measure, Settings& settings) {
  if (context.input_grams) return context.input_grams->find(measure, settings);
  return std::make_shared<InputGrams>(measure, settings);
}

}  // namespace kelvin
