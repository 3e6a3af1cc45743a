#pragma once

#include <torch/types.h>

#include <cstdint>

namespace kelvin {

// Signs of the vectors are arbitrary, and so is the choice of vectors of equal eigenvalues: of
// those only the span is defined.
struct TopEigenvectors {
  torch::Tensor values;   // [k], descending
  torch::Tensor vectors;  // [dims, k], orthonormal columns, float64
};

struct TopEigenvectorsOptions {
  uint64_t seed = 0;         // of the random block it starts from
  int64_t all_up_to = 1024;  // dims up to which computing all eigenvectors is faster
  int64_t steps = 400;       // products with the matrix after which all are computed instead
};

// The k largest eigenvalues of a symmetric matrix [dims, dims] and their vectors, in float64.  Of
// large matrices by a randomised block Krylov iteration (Musco and Musco, 2015), until no residual
// |M v - value v| exceeds 1e-10 of the largest eigenvalue; it takes a few products with narrow
// blocks where all eigenvectors would take many times as long.
TopEigenvectors top_eigenvectors(const torch::Tensor& matrix, int64_t k,
                                 const TopEigenvectorsOptions& options = {});

}  // namespace kelvin
