#include "kelvin/math/symmetric_product.h"

#include <torch/types.h>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

constexpr int64_t kColumns = 128;  // of the result at a time: the diagonal is overshot by so many

}  // namespace

void add_lower_product(const torch::Tensor& rows, const torch::Tensor& sum) {
  check(rows.dim() == 2 && sum.dim() == 2 && sum.size(0) == rows.size(1) &&
            sum.size(1) == rows.size(1),
        "add_lower_product: the sum of rows ", rows.sizes(), " must be square and as wide, is ",
        sum.sizes());
  for (int64_t column = 0; column < rows.size(1); column += kColumns) {
    const auto right = rows.slice(1, column, column + kColumns);
    const auto below = rows.slice(1, column);
    sum.slice(0, column).slice(1, column, column + kColumns).addmm_(below.t(), right);
  }
}

void mirror_lower(const torch::Tensor& matrix) {
  check(matrix.dim() == 2 && matrix.size(0) == matrix.size(1),
        "mirror_lower: the matrix must be square, is ", matrix.sizes());
  matrix.tril_();
  matrix.add_(matrix.tril(-1).t());
}

}  // namespace kelvin
