#include "kelvin/numerics/gram.h"

#include <torch/types.h>

#include <algorithm>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/ops/parallel_for.h"

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

namespace {

constexpr int64_t kGramBlock = 512;            // rows
constexpr int64_t kPieces = 16;                // with a sum of its own each
constexpr int64_t kBlocksOfAPiece = 4;         // or making and adding sums would take too long
constexpr int64_t kMemory = int64_t{1} << 28;  // bytes of these sums

int64_t bytes_of(int64_t dims) { return dims * dims * static_cast<int64_t>(sizeof(double)); }

int64_t blocks_of(int64_t count) { return (count + kGramBlock - 1) / kGramBlock; }

int64_t pieces_of(int64_t count, int64_t dims) {
  const auto worthwhile = blocks_of(count) / kBlocksOfAPiece;
  return std::clamp<int64_t>(std::min(worthwhile, kMemory / bytes_of(dims)), 1, kPieces);
}

}  // namespace

torch::Tensor parallel_gram(int64_t count, int64_t dims,
                            const std::function<torch::Tensor(int64_t, int64_t)>& rows) {
  check(count >= 0 && dims > 0, "parallel_gram: count must not be below 0 and dims above, got ",
        count, " and ", dims);
  const auto blocks = blocks_of(count);
  const auto pieces = pieces_of(count, dims);
  std::vector<torch::Tensor> sums(static_cast<size_t>(pieces));
  parallel_for_tasks(pieces, [&](int64_t piece) {
    auto& sum = sums[static_cast<size_t>(piece)];
    sum = torch::zeros({dims, dims}, torch::kFloat64);
    for (int64_t block = piece; block < blocks; block += pieces) {
      add_lower_product(rows(block * kGramBlock, std::min((block + 1) * kGramBlock, count)), sum);
    }
  });
  auto sum = sums[0];
  for (int64_t piece = 1; piece < pieces; ++piece) sum.add_(sums[static_cast<size_t>(piece)]);
  mirror_lower(sum);
  return sum;
}

int64_t parallel_gram_bytes(int64_t count, int64_t dims) {
  constexpr int64_t kOfResult = 1;  // its lower triangle
  return (pieces_of(count, dims) + kOfResult) * bytes_of(dims);
}

}  // namespace kelvin
