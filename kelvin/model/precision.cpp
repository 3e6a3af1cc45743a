#include "kelvin/model/precision.h"

#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include <bit>

#include "kelvin/core/check.h"
#include "kelvin/ops/libtorch.h"
#include "kelvin/ops/parallel_for.h"

namespace kelvin {
namespace {

thread_local bool is_rounding = false;

float rounded_to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U;
  return value == value ? std::bit_cast<float>(rounded) : value;  // NaN stays NaN
}

torch::Tensor rounded(const torch::Tensor& tensor) {
  if (tensor.scalar_type() != torch::kFloat32 || !tensor.is_cpu()) {
    return tensor.to(torch::kBFloat16).to(tensor.scalar_type());
  }
  const auto dense = tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous();
  auto result = torch::empty_like(dense);
  const auto* from = dense.data_ptr<float>();
  auto* to = result.data_ptr<float>();
  constexpr int64_t kGrain = 1 << 15;
  parallel_for(0, dense.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = rounded_to_bfloat16(from[i]);
  });
  return result;
}

class Rounding : public torch::autograd::Function<Rounding> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext*, const torch::Tensor& tensor) {
    return rounded(tensor);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& gradients) {
    return {rounded(gradients.at(0))};
  }
};

void set_autocast(bool enabled) {
  if (enabled == is_autocast_enabled(torch::kCPU)) return;
  set_autocast_enabled(torch::kCPU, enabled);
  if (torch::cuda::is_available()) set_autocast_enabled(torch::kCUDA, enabled);
  // Casts of weights are kept only as long as the weights stay what they are.
  if (!enabled) at::autocast::clear_cache();
}

}  // namespace

Precision precision_of(const std::string& name) {
  check(name == "fp32" || name == "bf16", "train.precision: must be fp32 or bf16, got '", name,
        "'");
  return name == "bf16" ? Precision::bf16 : Precision::fp32;
}

const char* name_of(Precision precision) { return precision == Precision::bf16 ? "bf16" : "fp32"; }

bool multiplies_bfloat16(torch::DeviceType device) {
  if (device != torch::kCPU) return true;
#if defined(__x86_64__)
  // What oneDNN asks for.
  return __builtin_cpu_supports("avx512f") > 0 && __builtin_cpu_supports("avx512bw") > 0 &&
         __builtin_cpu_supports("avx512vl") > 0 && __builtin_cpu_supports("avx512dq") > 0;
#else
  return false;
#endif
}

PrecisionScope::PrecisionScope(Precision precision, torch::DeviceType device)
    : PrecisionScope(precision, multiplies_bfloat16(device)) {}

PrecisionScope::PrecisionScope(Precision precision, bool is_native)
    : was_rounding_(is_rounding), was_autocasting_(is_autocast_enabled(torch::kCPU)) {
  is_rounding = precision == Precision::bf16 && !is_native;
  set_autocast(precision == Precision::bf16 && is_native);
}

PrecisionScope::~PrecisionScope() {
  is_rounding = was_rounding_;
  set_autocast(was_autocasting_);
}

bool rounds_products() { return is_rounding; }

torch::Tensor in_precision(const torch::Tensor& tensor) {
  return is_rounding && tensor.defined() ? Rounding::apply(tensor) : tensor;
}

}  // namespace kelvin
