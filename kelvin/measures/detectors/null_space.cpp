#include "kelvin/measures/detectors/null_space.h"

#include <torch/torch.h>

#include "kelvin/core/check.h"
#include "kelvin/numerics/gram.h"
#include "kelvin/ops/parallel_for.h"

namespace kelvin {
namespace {

constexpr double kNothing = 1e-12;  // of a feature's length

// Sum over all rows h of (h - origin) (h - origin)^T.
torch::Tensor scatter_around(const torch::Tensor& origin, const torch::Tensor& features) {
  return parallel_gram(features.size(0), features.size(1), [&](int64_t begin, int64_t end) {
    return features.slice(0, begin, end) - origin;
  });
}

}  // namespace

torch::Tensor NullSpace::norms(const torch::Tensor& features) const {
  return row_numbers(features.size(0), [&](int64_t begin, int64_t end) {
    const auto centred = features.slice(0, begin, end) - origin;
    const auto norms = centred.matmul(directions).norm(2, 1);
    // What rounding leaves must not rank samples.
    return torch::where(norms <= kNothing * centred.norm(2, 1), torch::zeros_like(norms), norms);
  });
}

int64_t read_principal_dimensions(Settings& settings) {
  int64_t dimensions = 0;
  settings.read("dimensions", dimensions);
  check(dimensions >= 0, settings.full_name("dimensions"), ": must not be below 0, got ",
        dimensions);
  return dimensions;
}

int64_t published_principal_dimensions(int64_t width) {
  if (width >= 2048) return 1000;
  if (width > 512) return 512;
  return width == 512 ? 300 : width / 2;
}

NullSpace null_space_of(const Detector& detector, const Record& id_train,
                        int64_t principal_dimensions) {
  const auto width = id_train.features.size(1);
  const auto dimensions =
      principal_dimensions > 0 ? principal_dimensions : published_principal_dimensions(width);
  check(dimensions < width, detector.name(), ": dimensions must be below the number of features, ",
        width, ", got ", dimensions);
  NullSpace result;
  result.origin = -torch::linalg_pinv(id_train.weight).matmul(id_train.bias);
  // Eigenvectors come in ascending order.
  const auto vectors =
      std::get<1>(torch::linalg_eigh(scatter_around(result.origin, id_train.features)));
  result.directions = vectors.slice(1, 0, width - dimensions).contiguous();
  return result;
}

}  // namespace kelvin
