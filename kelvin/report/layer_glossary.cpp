#include "kelvin/report/layer_glossary.h"

namespace kelvin {

// A table.  NOLINTNEXTLINE(readability-function-size)
const std::vector<Term>& layer_glossary() {
  static const std::vector<Term> terms = {
      {.name = "covariance_rank",
       .label = "covariance rank",
       .meaning = "How many directions the outputs of a layer vary in: eigenvalues of their "
                  "covariance above gamma times the largest. Of a wide layer it is that of a "
                  "projection, and marked where that is not reliable."},
      {.name = "numerical_rank",
       .label = "numerical rank",
       .meaning = "How many singular values of the centred outputs of a layer exceed gamma times "
                  "the largest."},
      {.name = "effective_rank",
       .label = "effective rank",
       .meaning = "How many directions a spectrum spreads over: the exponential of the entropy of "
                  "the singular values divided by their sum; without a layer, of the logits."},
      {.name = "rankme",
       .label = "RankMe",
       .meaning = "The effective rank with 1e-7 added to each share, as RankMe defines it, so that "
                  "numbers compare with published ones."},
      {.name = "stable_rank",
       .label = "stable rank",
       .meaning = "The sum of the squared singular values over the largest square: 1 if one "
                  "direction holds everything."},
      {.name = "participation_ratio",
       .label = "participation ratio",
       .meaning = "The squared sum of the squared singular values over the sum of their squares: "
                  "how many directions share the variance."},
      {.name = "post_softmax_effective_rank",
       .label = "effective rank after the softmax",
       .meaning = "The effective rank of softmax(M / T), the matrix of predicted probabilities."},
      {.name = "post_softmax_rankme",
       .label = "RankMe after the softmax",
       .meaning = "RankMe of softmax(M / T), the matrix of predicted probabilities."},
      {.name = "post_softmax_stable_rank",
       .label = "stable rank after the softmax",
       .meaning = "The stable rank of softmax(M / T), the matrix of predicted probabilities."},
      {.name = "post_softmax_participation_ratio",
       .label = "participation ratio after the softmax",
       .meaning =
           "The participation ratio of softmax(M / T), the matrix of predicted probabilities."},
      {.name = "post_softmax_singular_value",
       .label = "singular value after the softmax",
       .meaning = "A singular value of softmax(M / T), the matrix of predicted probabilities."},
      {.name = "between_class_variance",
       .label = "between-class variance",
       .meaning = "The mean squared distance of the samples' class means to the mean of all "
                  "samples, in a layer's features."},
      {.name = "within_class_variance",
       .label = "within-class variance",
       .meaning = "The mean squared distance of the samples to the mean of their class, in a "
                  "layer's features; with the between-class one it adds up to the total."},
      {.name = "class_variance_ratio",
       .label = "within / between classes",
       .meaning = "The within-class variance over the between-class one: it falls towards 0 as "
                  "classes collapse to points."},
      {.name = "class_rank",
       .label = "rank of a class",
       .meaning = "How many directions the samples of one class vary in: eigenvalues of the "
                  "class's covariance above gamma times its largest, on a fixed sample, mean over "
                  "classes; with an index, of that class."},
      {.name = "cka",
       .label = "CKA",
       .meaning = "How alike two layers' features are on a fixed sample, from 0 to 1, whatever "
                  "their rotation and scale: linear centred kernel alignment with the last layer, "
                  "and with the next."},
      {.name = "cka_neighbours",
       .label = "CKA of neighbouring layers",
       .meaning = "The mean CKA of each layer with the next: near 1 if layers change little."},
      {.name = "alignment",
       .label = "alignment",
       .meaning =
           "Largest cosine between the leading singular directions of a layer's weights and those "
           "of its inputs; 1 means that the weights amplify exactly where the inputs are."},
      {.name = "gradient_rank",
       .label = "gradient rank",
       .meaning = "How many directions the gradient of a layer's weights has on one batch, "
                  "counting singular values above gamma times the largest."},
      {.name = "activation_rank",
       .label = "input rank",
       .meaning = "How many directions a layer's inputs have on the same batch as its gradient; "
                  "bounds the exact rank of the gradient."},
      {.name = "gradient_rank_violations",
       .label = "gradient rank violations",
       .meaning = "Layers whose numerical gradient rank exceeds that of their inputs; the bound "
                  "holds for exact rank, so it may be above 0."},
      {.name = "gradient_singular_value",
       .label = "singular value of the gradient",
       .meaning = "One of the five largest singular values of a layer's gradient."},
      {.name = "norm_of_singular_values",
       .label = "norm by singular values",
       .meaning = "How large a layer's product W A would be if the singular vectors of weights and "
                  "inputs matched in order; the most that any rotation gives."},
      {.name = "norm_alignment",
       .label = "norm alignment",
       .meaning = "Which part of that largest norm the layer's product really has, from 0 to 1; "
                  "times norm_of_singular_values it is the norm of W A."},
      {.name = "layer_top_singular_value",
       .label = "top singular value of the weights",
       .meaning = "The most by which a layer's weight matrix stretches a vector."},
      {.name = "weight_norm",
       .label = "weight norm",
       .meaning = "Frobenius norm of a layer's weight matrix."},
      {.name = "weight_stable_rank",
       .label = "stable rank of the weights",
       .meaning = "Sum of the squared singular values of a layer's weights over the largest "
                  "square; low if few directions hold the norm."},
      {.name = "weight_rank",
       .label = "rank of the weights",
       .meaning = "How many singular values of a layer's weights exceed gamma times the largest."},
      {.name = "top_singular_product",
       .label = "product of top singular values",
       .meaning = "By how much a network would amplify its input if every layer passed on its "
                  "leading direction to the next."},
      {.name = "network_gain",
       .label = "gain of the logits",
       .meaning = "Largest singular value of the logits over that of the network's input: by how "
                  "much the network really amplifies."},
      {.name = "top_singular_share",
       .label = "share of the product",
       .meaning = "The gain of the logits over the product of top singular values; near 1 if all "
                  "layers are aligned and linear."},
  };
  return terms;
}

}  // namespace kelvin
