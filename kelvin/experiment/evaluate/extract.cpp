#include "kelvin/experiment/evaluate/extract.h"

#include <torch/torch.h>

#include <algorithm>
#include <numeric>

#include "kelvin/data/batches.h"
#include "kelvin/model/modes.h"
#include "kelvin/ops/reference_ops.h"

namespace kelvin {
namespace {

// Activations of all layers of a batch are in memory at once; attention grows with the square of
// the tokens.
int64_t batch_size_for(const ImageShape& shape, const ExtractOptions& options) {
  constexpr int64_t kSmallArea = int64_t{32} * 32;
  constexpr int64_t kLeast = 16;
  const auto size = options.batch_size;
  if (options.with_attention) return std::min(kLeast, size);
  const auto area = std::max(kSmallArea, shape.height * shape.width);
  return std::clamp(size * kSmallArea / area, std::min(kLeast, size), size);
}

std::vector<int64_t> all_of(const Images& images) {
  std::vector<int64_t> indices(static_cast<size_t>(images.size()));
  std::iota(indices.begin(), indices.end(), int64_t{0});
  return indices;
}

// What measures are shown: on the CPU, wherever the network is, and without gradients, which
// parameters would bring along into whatever is computed from them.
torch::Tensor shown(const torch::Tensor& tensor) {
  return tensor.defined() ? tensor.detach().cpu() : tensor;
}

std::vector<LayerRecord> shown(std::vector<LayerRecord> layers) {
  for (auto& layer : layers) {
    for (auto* tensor : {&layer.weight, &layer.bias, &layer.input, &layer.pre_activation,
                         &layer.output, &layer.before_add, &layer.gradient}) {
      *tensor = shown(*tensor);
    }
  }
  return layers;
}

std::vector<AttentionRecord> shown(std::vector<AttentionRecord> attention) {
  for (auto& layer : attention) {
    layer.logits = shown(layer.logits);
    layer.weights = shown(layer.weights);
  }
  return attention;
}

Record record_of(Model& model, const Batch& batch, const Dataset& dataset,
                 const ExtractOptions& options) {
  Taps taps({.layers = options.with_layers, .attention = options.with_attention});
  const auto device = model.parameters().front().device();
  Record record{.split = options.split,
                .ood = options.is_ood ? dataset.name : "",
                .classes = dataset.classes,
                .logits = shown(model.forward(batch.images.to(device), &taps)),
                .labels = batch.labels};
  const auto& classifier = taps.layers().back();
  record.features = shown(classifier.input);
  if (classifier.pre_activation.is_same(classifier.output)) {
    record.weight = shown(classifier.weight);
    record.bias = shown(classifier.bias);
  }
  if (options.with_layers) record.layers = shown(taps.layers());
  record.attention = shown(taps.attention());
  return record;
}

}  // namespace

std::vector<int64_t> equal_batches(int64_t samples, int64_t batch_size) {
  const auto batches = (samples + batch_size - 1) / batch_size;
  std::vector<int64_t> bounds;
  for (int64_t i = 0; i <= batches; ++i)
    bounds.push_back(i * samples / std::max<int64_t>(batches, 1));
  return bounds;
}

void extract(Model& model, const Dataset& dataset, const Dataset& trained_on,
             const ExtractOptions& options, const std::function<void(const Record&)>& consume) {
  torch::NoGradGuard no_grad;
  const MeasuringMode mode(model, options.batch_statistics);
  const BatchMaker batches(trained_on);
  const auto& images = options.split == Split::train ? dataset.train : dataset.test;
  const auto indices = options.indices.empty() ? all_of(images) : options.indices;
  const auto bounds = equal_batches(static_cast<int64_t>(indices.size()),
                                    batch_size_for(trained_on.shown_shape(), options));
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    const std::vector<int64_t> chosen(indices.begin() + bounds[i], indices.begin() + bounds[i + 1]);
    auto record = record_of(model, batches.make(images, chosen), dataset, options);
    record.indices = torch::tensor(chosen, torch::kInt64);
    consume(record);
  }
}

Record extract_gradients(Model& model, const Dataset& dataset, const GradientOptions& options) {
  torch::AutoGradMode with_gradients(true);
  const ReferenceOpsScope path(true);  // what is measured comes from LibTorch's own operations
  // One image has no statistics.
  const MeasuringMode mode(model, options.batch_statistics && options.indices.size() > 1);
  const auto batch = BatchMaker(dataset, options.views).make(dataset.train, options.indices);
  Taps taps({.layers = true, .attention = false});
  const auto device = model.parameters().front().device();
  const auto logits = model.forward(batch.images.to(device), &taps);
  const auto loss = options.loss(logits, batch.labels.to(device));
  std::vector<torch::Tensor> weights;
  for (const auto& layer : taps.layers()) weights.push_back(layer.weight);
  check(loss.requires_grad(),
        "gradients: the weights of a network with its own code are constants and have none; leave "
        "out measures that need them, such as gradient_rank");
  const auto gradients = torch::autograd::grad({loss}, weights);
  Record record{.split = Split::train,
                .ood = "",
                .classes = dataset.classes,
                .logits = shown(logits),
                .labels = batch.labels};
  record.layers = shown(taps.layers());
  for (size_t i = 0; i < gradients.size(); ++i) {
    record.layers[i].gradient = shown(gradients[i]);
  }
  record.features = record.layers.back().input;
  return record;
}

void NetworkRecords::show(const Pass& pass, const Consume& consume) {
  const auto& dataset = pass.ood ? ood_[*pass.ood] : own_;
  ExtractOptions options{.split = pass.split,
                         .is_ood = pass.ood.has_value(),
                         .with_layers = pass.with_layers,
                         .with_attention = pass.with_attention};
  choose(pass, pass.split == Split::train ? dataset.train : dataset.test, options);
  extract(model_, dataset, own_, options, [&](const Record& record) {
    look_at(pass, record);
    consume(record);
  });
}

Record NetworkRecords::example(const Needs& needs) const {
  Record example;
  extract(model_, own_, own_,
          {.with_layers = needs.layers, .with_attention = needs.attention, .indices = {0}},
          [&](const Record& record) { example = record; });
  return example;
}

}  // namespace kelvin
