#include "kelvin/representations/extract.h"

#include <torch/torch.h>

#include <algorithm>
#include <numeric>

#include "kelvin/data/batches.h"

namespace kelvin {
namespace {

// Evaluation mode for as long as it lives.
class EvaluationMode {
 public:
  explicit EvaluationMode(Model& model) : model_(model), was_training_(model.is_training()) {
    model_.eval();
  }
  ~EvaluationMode() { model_.train(was_training_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  Model& model_;
  bool was_training_;
};

}  // namespace

void extract(Model& model, const Dataset& dataset, const Dataset& trained_on,
             const ExtractOptions& options, const std::function<void(const Record&)>& consume) {
  torch::NoGradGuard no_grad;
  const EvaluationMode evaluation(model);
  const BatchMaker batches(trained_on.mean, trained_on.deviation);
  const auto& images = options.split == Split::train ? dataset.train : dataset.test;
  auto indices = options.indices;
  if (indices.empty()) {
    indices.resize(static_cast<size_t>(images.size()));
    std::iota(indices.begin(), indices.end(), int64_t{0});
  }

  const auto count = static_cast<int64_t>(indices.size());
  for (int64_t begin = 0; begin < count; begin += options.batch_size) {
    const auto end = std::min(begin + options.batch_size, count);
    const auto batch = batches.make(images, {indices.begin() + begin, indices.begin() + end});
    Taps taps;
    Record record{.split = options.split,
                  .ood = options.is_ood ? dataset.name : "",
                  .classes = dataset.classes,
                  .logits = model.forward(batch.images, &taps),
                  .labels = batch.labels};
    const auto& classifier = taps.layers().back();
    record.features = classifier.input;
    if (classifier.product.is_same(classifier.output)) {
      record.weight = classifier.weight;
      record.bias = classifier.bias;
    }
    if (options.with_layers) {
      for (const auto& tap : taps.layers()) {
        record.layers.push_back({.name = tap.name,
                                 .weight = tap.weight,
                                 .bias = tap.bias,
                                 .input = tap.input,
                                 .product = tap.product,
                                 .output = tap.output,
                                 .stride = tap.stride,
                                 .padding = tap.padding});
      }
    }
    if (options.with_attention) {
      for (const auto& tap : taps.attention()) {
        record.attention.push_back({.name = tap.name,
                                    .logits = tap.logits,
                                    .shares = tap.shares,
                                    .head_width = tap.head_width});
      }
    }
    consume(record);
  }
}

}  // namespace kelvin
