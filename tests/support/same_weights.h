#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "kelvin/model/model.h"
#include "kelvin/ops/tensors.h"

namespace kelvin {

inline NamedTensors parameters_and_buffers(const Model& model) {
  NamedTensors tensors;
  for (const auto& item : model.named_parameters()) tensors[item.key()] = item.value();
  for (const auto& item : model.named_buffers()) tensors[item.key()] = item.value();
  return tensors;
}

// The same weights here and in Python without a file between them: LibTorch and PyTorch of one
// version draw the same numbers from the same seed.  Tensors are numbered in the order of their
// names; scales keep the activations of deep networks near one.  Of a large tensor only the first
// numbers are drawn, and repeat with a period that divides no row: a hundred million draws take
// longer than the network.

constexpr int64_t kDrawn = 1'000'003;

inline torch::Tensor drawn_numbers(torch::IntArrayRef sizes, uint64_t seed) {
  const auto count = c10::multiply_integers(sizes);
  const auto drawn =
      torch::randn({std::min(count, kDrawn)}, at::make_generator<at::CPUGeneratorImpl>(seed));
  if (count <= kDrawn) return drawn.view(sizes);
  return drawn.repeat({(count + kDrawn - 1) / kDrawn}).slice(0, 0, count).view(sizes);
}

inline void draw_same_weights(const Model& model) {
  torch::NoGradGuard no_grad;
  uint64_t seed = 0;
  for (auto& [name, tensor] : parameters_and_buffers(model)) {
    ++seed;
    if (name.ends_with("num_batches_tracked")) continue;
    const auto drawn = drawn_numbers(tensor.sizes(), seed);
    if (tensor.dim() > 1) {
      tensor.copy_(drawn * std::sqrt(2.0 / static_cast<double>(tensor[0].numel())));
    } else if (name.ends_with("bias") || name.ends_with("mean")) {
      tensor.copy_(drawn * 0.1);
    } else {
      tensor.copy_(drawn * 0.1 + 1);
    }
  }
}

// Defines draw_same_weights(model) and projections(model) for Python.
constexpr auto kSameWeightsPython = R"(
import torch, numpy as np
# What networks draw when they are made is replaced at once.
for name in ('kaiming_uniform_', 'kaiming_normal_', 'uniform_', 'normal_', 'trunc_normal_'):
    setattr(torch.nn.init, name, lambda tensor, *rest, **more: tensor)
def drawn_numbers(shape, seed, most=1000003):
    count = shape.numel()
    drawn = torch.randn(min(count, most), generator=torch.Generator().manual_seed(seed))
    if count > most: drawn = drawn.repeat(-(-count // most))[:count]
    return drawn.view(shape)
def draw_same_weights(model):
    with torch.no_grad():
        for seed, (name, t) in enumerate(sorted(model.state_dict().items()), 1):
            if name.endswith('num_batches_tracked'): continue
            drawn = drawn_numbers(t.shape, seed)
            if t.dim() > 1: t.copy_(drawn * (2.0 / t[0].numel()) ** 0.5)
            elif name.endswith('bias') or name.endswith('mean'): t.copy_(drawn * 0.1)
            else: t.copy_(drawn * 0.1 + 1)
# Norm of each parameter's gradient and its product with drawn numbers.
def projections(model):
    rows = []
    for seed, (name, p) in enumerate(sorted(model.named_parameters()), 1):
        drawn = drawn_numbers(p.shape, seed).double()
        rows.append([p.grad.double().norm().item(), (p.grad.double() * drawn).sum().item()])
    return np.array(rows)
)";

inline torch::Tensor gradient_projections(const Model& model) {
  NamedTensors parameters;
  for (const auto& item : model.named_parameters()) parameters[item.key()] = item.value();
  std::vector<torch::Tensor> rows;
  uint64_t seed = 0;
  for (const auto& [name, parameter] : parameters) {
    const auto drawn = drawn_numbers(parameter.sizes(), ++seed);
    const auto gradient = parameter.grad().to(torch::kFloat64);
    rows.push_back(torch::stack({gradient.norm(), (gradient * drawn).sum()}));
  }
  return torch::stack(rows);
}

}  // namespace kelvin
