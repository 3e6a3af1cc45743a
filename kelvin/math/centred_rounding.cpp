#include "kelvin/math/centred_rounding.h"

#include <torch/types.h>

#include <bit>

#include "kelvin/core/check.h"
#include "kelvin/math/parallel_for.h"
#include "kelvin/math/vector_clones.h"

namespace kelvin {
namespace {

constexpr uint32_t kExponent = 0x7f800000;
constexpr uint16_t kQuiet = 0x0040;  // keeps a NaN one when its lower half is cut off

KELVIN_VECTOR_CLONES void round_row(const float* row, const float* mean, int64_t count,
                                    uint16_t* __restrict to) {
  for (int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<uint32_t>(row[i] - mean[i]);
    const uint32_t to_even = 0x7fff + ((bits >> 16) & 1);
    const auto rounded = static_cast<uint16_t>((bits + to_even) >> 16);
    const auto cut = static_cast<uint16_t>((bits >> 16) | kQuiet);
    to[i] = (bits & 0x7fffffff) > kExponent ? cut : rounded;
  }
}

}  // namespace

torch::Tensor centred_rounding(const torch::Tensor& rows, const torch::Tensor& mean) {
  check(rows.dim() == 2 && mean.dim() == 1 && rows.size(1) == mean.size(0) &&
            rows.scalar_type() == torch::kFloat32 && mean.scalar_type() == torch::kFloat32,
        "centred_rounding: needs float32 rows [count, dims] and mean [dims], got ", rows.sizes(),
        " and ", mean.sizes());
  const auto values = rows.contiguous();
  const auto offsets = mean.contiguous();
  auto rounded = torch::empty(rows.sizes(), torch::kBFloat16);
  const auto dims = rows.size(1);
  const auto* from = values.data_ptr<float>();
  auto* to = reinterpret_cast<uint16_t*>(rounded.data_ptr<at::BFloat16>());
  parallel_for(0, rows.size(0), 1, [&](int64_t begin, int64_t end) {
    for (auto i = begin; i < end; ++i) {
      round_row(from + i * dims, offsets.data_ptr<float>(), dims, to + i * dims);
    }
  });
  return rounded;
}

}  // namespace kelvin
