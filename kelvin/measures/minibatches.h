#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "kelvin/math/streamed_regression.h"

namespace kelvin {

enum class Recut { exactly, at_least };

// Cuts a stream of batches of all layers anew.
class Minibatches {
 public:
  // Of one layer: its place, and its minibatch.
  using Consume = std::function<void(size_t, const Minibatch&)>;

  // Of `samples` samples each, or of at least so many, where batches are handed on uncut.
  Minibatches(int64_t samples, Recut recut) : size_(samples), recut_(recut) {}

  // `rows` has the features of each layer; labels and held_out are those of all of them.
  void add(const std::vector<torch::Tensor>& rows, const torch::Tensor& labels,
           const torch::Tensor& held_out, const Consume& consume);
  // What is left.
  void finish(const Consume& consume);

 private:
  void hand_on(int64_t samples, const Consume& consume);

  int64_t size_;
  Recut recut_;
  int64_t kept_ = 0;
  std::vector<std::vector<torch::Tensor>> rows_;  // by layer, batch by batch
  std::vector<torch::Tensor> labels_;
  std::vector<torch::Tensor> held_out_;
};

}  // namespace kelvin
