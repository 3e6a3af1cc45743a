#include "kelvin/measures/minibatches.h"

#include <torch/types.h>

#include "kelvin/math/independent_work.h"

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
  for_each_independent(static_cast<int64_t>(rows_.size()), [&](int64_t i) {
    const auto layer = static_cast<size_t>(i);
    auto own = batch;
    own.features = take(rows_[layer], samples);
    consume(layer, own);
  });
  kept_ -= samples;
}

}  // namespace kelvin
