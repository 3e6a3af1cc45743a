#include "kelvin/math/parallel_gram.h"

#include <torch/types.h>

#include <algorithm>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/math/independent_work.h"
#include "kelvin/math/symmetric_product.h"

namespace kelvin {
namespace {

constexpr int64_t kBlock = 512;                // rows
constexpr int64_t kPieces = 16;                // with a sum of its own each
constexpr int64_t kBlocksOfAPiece = 4;         // or making and adding sums would take too long
constexpr int64_t kMemory = int64_t{1} << 28;  // bytes of these sums

int64_t bytes_of(int64_t dims) { return dims * dims * static_cast<int64_t>(sizeof(double)); }

int64_t blocks_of(int64_t count) { return (count + kBlock - 1) / kBlock; }

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
  for_each_independent(pieces, [&](int64_t piece) {
    auto& sum = sums[static_cast<size_t>(piece)];
    sum = torch::zeros({dims, dims}, torch::kFloat64);
    for (int64_t block = piece; block < blocks; block += pieces) {
      add_lower_product(rows(block * kBlock, std::min((block + 1) * kBlock, count)), sum);
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
