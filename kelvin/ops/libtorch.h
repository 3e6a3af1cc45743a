#pragma once

#include <torch/types.h>
#include <torch/version.h>

#include <optional>
#include <string>

namespace kelvin {

// Where versions of LibTorch differ: 1.13 of Debian 12, 2.6 of Debian 13, 2.14 of sid.

// What a function of autograd takes for a tensor that may be left out.
#if TORCH_VERSION_MAJOR >= 2
using OptionalTensor = std::optional<torch::Tensor>;
#else
using OptionalTensor = c10::optional<torch::Tensor>;
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

// Autocast of this thread, for the CPU or CUDA: whether it is on, and switching it, then to
// bfloat16.
bool is_autocast_enabled(torch::DeviceType device);
void set_autocast_enabled(torch::DeviceType device, bool enabled);

}  // namespace kelvin
