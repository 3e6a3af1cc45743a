#include "kelvin/experiment/product_peak.h"

#include <torch/torch.h>

#include <algorithm>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

constexpr int64_t kSide = 2048;  // large enough for any BLAS, small enough for any memory
constexpr int kProducts = 8;     // the first of them prepares threads and buffers

}  // namespace

ProductPeak product_peak(Precision precision, const RunContext& context) {
  torch::NoGradGuard no_grad;
  const bool is_native = precision == Precision::bf16 && multiplies_bfloat16(torch::kCPU);
  const auto type = is_native ? torch::kBFloat16 : torch::kFloat32;
  // Any numbers will do but zeros, which some machines multiply with less power.
  const auto left = torch::linspace(-1, 1, kSide * kSide).view({kSide, kSide}).to(type);
  auto result = torch::empty({kSide, kSide}, type);
  double fastest = 0;
  for (int i = 0; i < kProducts; ++i) {
    const double start = context.seconds();
    torch::mm_out(result, left, left);
    const double seconds = context.seconds() - start;
    check(seconds > 0, "product_peak: needs a clock that goes on, a product took ", seconds, " s");
    if (fastest == 0 || seconds < fastest) fastest = seconds;
  }
  return {.gflops = 2e-9 * static_cast<double>(kSide * kSide * kSide) / fastest,
          .precision = is_native ? "bf16" : "fp32"};
}

}  // namespace kelvin
