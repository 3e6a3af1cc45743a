#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "kelvin/math/streamed_regression.h"

namespace kelvin {

// Cuts a stream of batches of all layers anew.
class Minibatches {
 public:
  // Of one layer: its place, and its minibatch.  Different layers are handed on at the same time.
  using Consume = std::function<void(size_t, const Minibatch&)>;

  // Of `samples` samples each but for the last, so that nothing depends on how the stream was cut.
  explicit Minibatches(int64_t samples) : size_(samples) {}

  // `rows` has the features of each layer; labels and held_out are those of all of them.
  void add(const std::vector<torch::Tensor>& rows, const torch::Tensor& labels,
           const torch::Tensor& held_out, const Consume& consume);
  // What is left.
  void finish(const Consume& consume);

 private:
  void hand_on(int64_t samples, const Consume& consume);

  int64_t size_;
  int64_t kept_ = 0;
  std::vector<std::vector<torch::Tensor>> rows_;  // by layer, batch by batch
  std::vector<torch::Tensor> labels_;
  std::vector<torch::Tensor> held_out_;
};

}  // namespace kelvin
