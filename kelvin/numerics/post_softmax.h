#pragma once

#include <torch/types.h>

#include <cstdint>

namespace kelvin {

// A B^T of two [n, k] matrices with entries U(-1, 1), in float64: rank k.  The random matrices of
// Figure 6 of Unpacking Softmax.
torch::Tensor low_rank_matrix(int64_t n, int64_t k, uint64_t seed);

// Of each column: logits [classes, samples] become the probabilities of each sample.
torch::Tensor column_softmax(const torch::Tensor& matrix);

// A matrix and S, its column-wise softmax.
struct PostSoftmax {
  int64_t rank = 0;               // singular values of S above gamma times the largest
  double norm = 0;                // of the matrix before the softmax (Frobenius)
  double column_cosine = 0;       // mean cosine similarity over pairs of columns of S
  double top_weight = 0;          // mean over columns of the largest entry of S
  int64_t distinct_argmaxes = 0;  // rows in which some column has its largest entry
};

// Of a [rows, columns] matrix of at least two columns, in float64.
PostSoftmax post_softmax(const torch::Tensor& matrix, double gamma);

}  // namespace kelvin
