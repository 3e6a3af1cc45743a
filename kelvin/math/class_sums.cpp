#include "kelvin/math/class_sums.h"

#include <torch/types.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/math/parallel_for.h"
#include "kelvin/math/vector_clones.h"

namespace kelvin {

namespace {

constexpr int64_t kBlock = 512;  // features whose sums stay in the nearest caches

KELVIN_VECTOR_CLONES void add(const float* from, int64_t count, double* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

KELVIN_VECTOR_CLONES void add(const double* from, int64_t count, double* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

// Every sum is made by one thread in the order of the rows, however many threads there are.
template <class Element>
void add_rows(const torch::Tensor& rows, const int64_t* classes, double* sums) {
  const auto* values = rows.data_ptr<Element>();
  const auto count = rows.size(0);
  const auto dims = rows.size(1);
  parallel_for(0, (dims + kBlock - 1) / kBlock, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const auto first = block * kBlock;
      const auto width = std::min(kBlock, dims - first);
      for (int64_t row = 0; row < count; ++row) {
        add(values + row * dims + first, width, sums + classes[row] * dims + first);
      }
    }
  });
}

}  // namespace

void add_class_sums(const torch::Tensor& rows, const torch::Tensor& labels, torch::Tensor& sums) {
  const auto dims = sums.size(1);
  check(rows.dim() == 2 && rows.size(1) == dims && labels.dim() == 1 &&
            labels.size(0) == rows.size(0),
        "add_class_sums: rows and labels must be [rows, ", dims, "] and [rows], got ", rows.sizes(),
        " and ", labels.sizes());
  check(sums.is_contiguous() && sums.scalar_type() == torch::kFloat64,
        "add_class_sums: sums must be float64 and contiguous");
  if (rows.size(0) == 0) return;
  check(labels.min().item<int64_t>() >= 0 && labels.max().item<int64_t>() < sums.size(0),
        "add_class_sums: labels must be in [0, ", sums.size(0), ")");
  const auto wholes = labels.to(torch::kInt64).contiguous();
  if (rows.scalar_type() == torch::kFloat32) {
    add_rows<float>(rows.contiguous(), wholes.data_ptr<int64_t>(), sums.data_ptr<double>());
  } else {
    add_rows<double>(rows.to(torch::kFloat64).contiguous(), wholes.data_ptr<int64_t>(),
                     sums.data_ptr<double>());
  }
}

}  // namespace kelvin
