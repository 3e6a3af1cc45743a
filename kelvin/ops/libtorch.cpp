#include "kelvin/ops/libtorch.h"

#include <ATen/autocast_mode.h>

namespace kelvin {

bool has_numbers(const torch::Tensor& tensor) {
  const auto keys = tensor.unsafeGetTensorImpl()->key_set();
  return !tensor.is_meta() && !keys.has(c10::DispatchKey::Python) &&
         !keys.has(c10::DispatchKey::Functionalize);
}

bool has_sizes(const torch::Tensor& tensor) {
  return !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

#if TORCH_VERSION_MAJOR >= 2

int64_t fixed_size(const torch::Tensor& tensor, int64_t dim) {
  return tensor.sym_size(dim).guard_int(__FILE__, __LINE__);
}

OptimizerStateKey optimizer_state_key(const torch::Tensor& parameter) {
  return parameter.unsafeGetTensorImpl();
}

bool is_autocast_enabled(torch::DeviceType device) {
  return at::autocast::is_autocast_enabled(device);
}

void set_autocast_enabled(torch::DeviceType device, bool enabled) {
  at::autocast::set_autocast_enabled(device, enabled);
  at::autocast::set_autocast_dtype(device, torch::kBFloat16);
}

#else

int64_t fixed_size(const torch::Tensor& tensor, int64_t dim) { return tensor.size(dim); }

OptimizerStateKey optimizer_state_key(const torch::Tensor& parameter) {
  return c10::guts::to_string(parameter.unsafeGetTensorImpl());
}

bool is_autocast_enabled(torch::DeviceType device) {
  return device == torch::kCPU ? at::autocast::is_cpu_enabled() : at::autocast::is_enabled();
}

void set_autocast_enabled(torch::DeviceType device, bool enabled) {
  if (device == torch::kCPU) {
    at::autocast::set_cpu_enabled(enabled);
    at::autocast::set_autocast_cpu_dtype(torch::kBFloat16);
  } else {
    at::autocast::set_enabled(enabled);
    at::autocast::set_autocast_gpu_dtype(torch::kBFloat16);
  }
}

#endif

}  // namespace kelvin
