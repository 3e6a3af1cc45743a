#include "kelvin/measures/streamed_probes.h"

#include <torch/types.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/numerics/streamed_regression.h"
#include "kelvin/ops/parallel_for.h"

namespace kelvin {
namespace {

torch::Tensor joined(const std::vector<torch::Tensor>& parts) {
  return parts.size() == 1 ? parts[0] : torch::cat(parts);
}

// The first `samples` rows are returned, the others remain.
torch::Tensor take(std::vector<torch::Tensor>& parts, int64_t samples) {
  const auto all = joined(parts);
  parts.clear();
  if (samples < all.size(0)) parts.push_back(all.slice(0, samples).clone());
  return all.slice(0, 0, samples);
}

}  // namespace

void Minibatches::add(const std::vector<torch::Tensor>& rows, const torch::Tensor& labels,
                      const torch::Tensor& held_out, const Consume& consume) {
  rows_.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) rows_[i].push_back(rows[i]);
  labels_.push_back(labels);
  if (held_out.defined()) held_out_.push_back(held_out);
  kept_ += labels.size(0);
  while (kept_ >= size_) hand_on(size_, consume);
}

void Minibatches::finish(const Consume& consume) {
  if (kept_ > 0) hand_on(kept_, consume);
}

void Minibatches::hand_on(int64_t samples, const Consume& consume) {
  Minibatch batch{.features = {}, .labels = take(labels_, samples)};
  if (!held_out_.empty()) batch.held_out = take(held_out_, samples);
  parallel_for_tasks(static_cast<int64_t>(rows_.size()), [&](int64_t i) {
    const auto layer = static_cast<size_t>(i);
    auto own = batch;
    own.features = take(rows_[layer], samples);
    consume(layer, own);
  });
  kept_ -= samples;
}

namespace {

constexpr uint64_t kHeldOutShare = 10;  // one in so many

bool is_published(const ProbeOptions& options) {
  return options.protocol == ProbeProtocol::published;
}

// Between penalties, by what is held out.
bool has_choice(const ProbeOptions& options) {
  return !is_published(options) && options.l2.size() > 1;
}

PreconditionedOptions preconditioned(const ProbeOptions& options, int64_t classes) {
  return {.classes = classes, .passes = options.passes, .l2 = options.l2};
}

AdamOptions adam(const ProbeOptions& options, int64_t classes, const std::string& layer) {
  return {.classes = classes,
          .learning_rate = options.learning_rate,
          .seed = derive_seed(options.seed, "probe of " + layer)};
}

std::unique_ptr<StreamedRegression> regression(const ProbeOptions& options, int64_t classes,
                                               const std::string& layer) {
  if (is_published(options)) return std::make_unique<AdamRegression>(adam(options, classes, layer));
  return std::make_unique<PreconditionedRegression>(preconditioned(options, classes));
}

Definition definition_of(const ProbeOptions& options) {
  if (is_published(options)) {
    return {{"protocol", "published"},
            {"probe", "multinomial logistic regression, Adam at a constant rate"},
            {"features", "flattened, as they are"},
            {"rate", options.learning_rate},
            {"weight_decay", 0}};
  }
  return {{"protocol", "reproduce"},
          {"probe",
           "multinomial logistic regression, stochastic gradients preconditioned along the "
           "directions of largest variance, with momentum, rate falling as a cosine"},
          {"momentum", PreconditionedRegression::kMomentum},
          {"most_directions", PreconditionedOptions{}.directions},
          {"features",
           "flattened; penalty on those standardised by the first samples, steps in those over the "
           "root of the deviation"},
          {"least_deviation", PreconditionedRegression::kLeastStdDev},
          {"rounding", PreconditionedRegression::kRounding},
          {"l2_candidates", options.l2}};
}

}  // namespace

StreamedProbes::StreamedProbes(const ProbeOptions& options)
    : options_(options), minibatches_(options.batch) {}

void StreamedProbes::begin(const Record& record) {
  classes_ = record.classes;
  for (const auto& layer : record.layers) {
    layers_.push_back({.name = layer.name,
                       .tap = tap_text(layer, options_.tap),
                       .width = flattened_rows(layer, options_.tap).size(1),
                       .training = regression(options_, classes_, layer.name)});
  }
}

std::vector<torch::Tensor> StreamedProbes::rows_of(const Record& record) const {
  std::vector<torch::Tensor> rows;
  for (size_t i = 0; i < layers_.size(); ++i) {
    check(record.layers.size() == layers_.size() && record.layers[i].name == layers_[i].name,
          "linear_probe: layer '", layers_[i].name, "' must be in every record of both splits");
    rows.push_back(flattened_rows(record.layers[i], options_.tap));
    check(rows.back().size(1) == layers_[i].width, "linear_probe: layer '", layers_[i].name,
          "' must have ", layers_[i].width, " features in every record, got ", rows.back().size(1));
  }
  return rows;
}

// The same samples in every pass, whatever their order; undefined if nothing has to be chosen.
torch::Tensor StreamedProbes::held_out_of(const Record& record) const {
  if (!has_choice(options_)) return {};
  const auto& indices = record.indices;
  check(indices.defined() && indices.size(0) == record.labels.size(0),
        "linear_probe: records of the training split must say which samples they are of, so that "
        "the same ones are held out in every pass");
  const auto seed = derive_seed(options_.seed, "held out of probes");
  auto held_out = torch::zeros(indices.sizes(), torch::kBool);
  for (int64_t i = 0; i < indices.size(0); ++i) {
    const auto index = static_cast<uint64_t>(indices[i].item<int64_t>());
    held_out[i] = scramble(seed ^ index) % kHeldOutShare == 0;
  }
  return held_out;
}

void StreamedProbes::train(size_t layer, const Minibatch& batch) {
  try {
    layers_[layer].training->train(batch);
  } catch (const Error& error) {
    check(false, "linear_probe: layer '", layers_[layer].name, "': ", error.what());
  }
}

void StreamedProbes::see_train(const Record& record) {
  if (layers_.empty()) begin(record);
  check(passes_ < options_.passes, "linear_probe: training samples came after the last pass");
  const auto held_out = held_out_of(record);
  if (passes_ == 0) {
    train_samples_ += record.labels.size(0);
    if (held_out.defined()) held_out_ += held_out.sum().item<int64_t>();
  }
  minibatches_.add(rows_of(record), record.labels, held_out,
                   [&](size_t layer, const Minibatch& batch) { train(layer, batch); });
}

bool StreamedProbes::wants_train_again() {
  if (train_samples_ == 0 || passes_ == options_.passes) return false;
  check_enough_samples(train_samples_, classes_);
  minibatches_.finish([&](size_t layer, const Minibatch& batch) { train(layer, batch); });
  for (auto& layer : layers_) layer.training->end_pass();
  if (++passes_ < options_.passes) return true;
  finish_training();
  return false;
}

void StreamedProbes::finish_training() {
  for (auto& layer : layers_) {
    layer.probe = layer.training->classifier();
    layer.solver = definition_of(options_);
    layer.solver["passes"] = options_.passes;
    layer.solver["batch"] = options_.batch;
    layer.solver["steps"] = layer.probe.iterations;
    layer.solver["width"] = layer.width;
    layer.solver["tap"] = layer.tap;
    layer.solver["precision"] = "float32";
    layer.solver["train_samples"] = train_samples_;
    if (const auto l2 = layer.training->l2()) layer.solver["l2"] = *l2;
    if (has_choice(options_)) layer.solver["held_out"] = held_out_;
    if (!is_published(options_)) {
      layer.solver["statistics_samples"] =
          std::min(PreconditionedOptions{}.statistics, train_samples_);
    }
    layer.training.reset();
  }
}

void StreamedProbes::see_test(const Record& record) {
  check(passes_ == options_.passes && train_samples_ > 0, "linear_probe: needs ", options_.passes,
        " passes over the training split of ", record.is_ood() ? record.ood : "the trained dataset",
        " before its test split, got ", passes_);
  const auto rows = rows_of(record);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto scores = layers_[i].probe.scores(rows[i]);
    check(torch::isfinite(scores).all().item<bool>(), "linear_probe: features of layer '",
          layers_[i].name, "' must be finite, hold NaN or infinity");
    layers_[i].hits.push_back(scores.argmax(1) == record.labels);
  }
  test_labels_.push_back(record.labels);
}

void StreamedProbes::merge(const Probes& /*other*/) {
  check(false,
        "linear_probe: probes that learnt from two streams cannot be merged; protocol diagnose "
        "can, or show one of them both streams");
}

NamedTensors StreamedProbes::state() const {
  NamedTensors tensors;
  for (const auto& layer : layers_) {
    if (layer.probe.weight.defined()) {
      tensors["weight/" + layer.name] = layer.probe.weight.clone();
      tensors["bias/" + layer.name] = layer.probe.bias.clone();
    }
    if (!layer.hits.empty()) tensors["hits/" + layer.name] = torch::cat(layer.hits);
  }
  return tensors;
}

bool StreamedProbes::saw_both_splits() const { return train_samples_ > 0 && !test_labels_.empty(); }

std::vector<ProbeResult> StreamedProbes::results() const {
  const auto test_labels = torch::cat(test_labels_);
  std::vector<ProbeResult> results;
  for (const auto& layer : layers_) {
    ProbeResult result{.layer = layer.name,
                       .hits = torch::cat(layer.hits),
                       .definition = layer.solver,
                       .chance = chance_of(test_labels),
                       .weight = layer.probe.weight,
                       .bias = layer.probe.bias};
    result.definition["samples"] = test_labels.size(0);
    results.push_back(std::move(result));
  }
  return results;
}

int64_t StreamedProbes::memory(const Record& example, int64_t samples,
                               const MeasureContext& known) const {
  constexpr int64_t kRecord = 256;  // samples that one record brings
  const auto most = std::max(known.most_classes, example.classes);
  const auto all = std::max(known.all_classes, most);
  int64_t bytes = 0;
  for (const auto& layer : example.layers) {
    const auto width = flattened_rows(layer, options_.tap).size(1);
    bytes += is_published(options_)
                 ? AdamRegression::memory(adam(options_, most, layer.name), width)
                 : PreconditionedRegression::memory(preconditioned(options_, most), width);
    // What waits for its minibatch, and the finished probes of all populations.
    const auto rows = options_.batch + kRecord + all;
    bytes += rows * width * static_cast<int64_t>(sizeof(float)) + samples;
  }
  return bytes;
}

}  // namespace kelvin
