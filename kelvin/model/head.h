#pragma once

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <string>

#include "kelvin/model/model.h"

namespace kelvin {

enum class HeadNorm { none, batch, layer };

struct HeadOptions {
  bool bias = true;  // of the linear map
  // Numbers that features are mapped to before that, both maps without a bias: the logits' rank is
  // at most this.  0: no such map.
  int64_t bottleneck = 0;
  HeadNorm norm_before = HeadNorm::none;  // on the features
  HeadNorm norm_after = HeadNorm::none;   // on the logits: blocks the growth of their norm
};

// The settings that every family has: bias, bottleneck, norm_before_logits, norm_after_logits.
HeadOptions read_head(Settings& settings);

// The end of every network: features, normalised if wanted, through a bottleneck if wanted and a
// linear map to logits, normalised if wanted.
class Head {
 public:
  Head() = default;
  Head(int64_t features, int64_t classes, const HeadOptions& options);

  // Hands the parts to the network that has them: normalisations and the bottleneck to `model`, the
  // linear map to `owner`, which is the network or a part of it, as `name`.
  void register_in(Model& model, torch::nn::Module& owner, const std::string& name);

  // `name` is the linear map's full name in the network.
  torch::Tensor forward(const torch::Tensor& features, const std::string& name, Taps* taps);

  const torch::nn::Linear& linear() const { return linear_; }

  bool normalises_logits() const { return !after_.is_empty(); }

  // Parameters and buffers of all parts.
  std::vector<torch::Tensor> tensors() const;

  // What the logits are linear in for any features: weight and bias of the linear map, or of the
  // normalisation behind it, which would undo anything before.
  std::vector<torch::Tensor> scaled_parameters() const;

  // Multiplies the logits.
  void scale_logits(double factor);

 private:
  torch::nn::Linear linear_{nullptr};
  torch::nn::Linear bottleneck_{nullptr};
  torch::nn::Sequential before_{nullptr};
  torch::nn::Sequential after_{nullptr};
};

}  // namespace kelvin
