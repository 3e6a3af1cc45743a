#pragma once

#include <torch/types.h>
#include <torch/version.h>

#include <optional>
#include <string>

namespace kelvin {

// Where versions of LibTorch differ: 1.13 of Debian 12, 2.6 of Debian 13, 2.14 of sid.

// What functions of autograd and operators take for what may be left out.
#if TORCH_VERSION_MAJOR >= 2
using OptionalTensor = std::optional<torch::Tensor>;
using OptionalDouble = std::optional<double>;
#else
using OptionalTensor = c10::optional<torch::Tensor>;
using OptionalDouble = c10::optional<double>;
#endif

inline OptionalTensor if_defined(const torch::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : OptionalTensor();
}

// By what an optimizer of LibTorch finds the state of a parameter.
#if TORCH_VERSION_MAJOR >= 2
using OptimizerStateKey = void*;
#else
using OptimizerStateKey = std::string;
#endif

OptimizerStateKey optimizer_state_key(const torch::Tensor& parameter);

// Whether its numbers can be read: not those of a meta tensor, nor of one that stands for others
// while torch.compile looks at what is computed.
bool has_numbers(const torch::Tensor& tensor);

// Whether its sizes can be read, which torch.compile may leave open.
bool has_sizes(const torch::Tensor& tensor);

// One of them, which is then fixed for what torch.compile makes.
int64_t fixed_size(const torch::Tensor& tensor, int64_t dim);

// Autocast of this thread, for the CPU or CUDA: whether it is on, and switching it, then to
// bfloat16.
bool is_autocast_enabled(torch::DeviceType device);
void set_autocast_enabled(torch::DeviceType device, bool enabled);

}  // namespace kelvin
