#pragma once

#include <torch/types.h>

#include <array>

namespace kelvin {

// What becomes of the factor beta beyond the entropy where its polynomial is largest (4.4125 nats
// for the published one, where beta is 2.42139).  A row of many similar logits has such an entropy.
enum class PastThePeak {
  fall,  // as published: beta follows the polynomial, which is below 1 from 5.9445 nats on
  hold,  // beta stays at the largest value
  grow,  // beta grows in proportion to the entropy
};

// The defaults are those of the paper.
struct AdaptiveSoftmaxOptions {
  // Of beta as a polynomial in the entropy in nats, the highest power first.
  std::array<double, 5> coefficients = {-0.037, 0.481, -2.3, 4.917, -1.791};
  double floor = 1;        // beta is not less; above 0, and below 1 it may raise entropies
  double threshold = 0.5;  // in nats; beta is 1 up to this entropy
  PastThePeak past_the_peak = PastThePeak::fall;
  double temperature = 1;    // divides the logits, also for the entropy
  bool detach_beta = false;  // whether gradients take beta for a constant
};

// "softmax is not enough", arXiv 2410.01104: softmax(beta z) over the last dimension with z =
// logits / T and a beta for each row, which depends on the entropy of softmax(z) and is at least 1,
// so that rows become sharper.  A logit of -infinity gets exactly 0, a row of nothing else is all
// zeros, and a NaN or +infinity makes its whole row NaNs.  The type is that of the logits; half
// precision is computed in single.  Differentiable once, by a kernel on the CPU; with reference
// ops as often as wanted.
torch::Tensor adaptive_softmax(const torch::Tensor& logits,
                               const AdaptiveSoftmaxOptions& options = {});

// The same with what was seen on the way: one number for each row, [...] for logits [..., n], in
// float64 for logits of that type and float32 for all others; not differentiable.
struct AdaptiveSoftmaxValues {
  torch::Tensor probabilities = {};
  torch::Tensor entropies = {};    // of softmax(z), in nats
  torch::Tensor betas = {};        // by which z was multiplied
  torch::Tensor spreads = {};      // largest less smallest logit that is not masked
  torch::Tensor top_weights = {};  // largest probabilities of the result
};
AdaptiveSoftmaxValues adaptive_softmax_values(const torch::Tensor& logits,
                                              const AdaptiveSoftmaxOptions& options = {});

// Beta at these entropies.
torch::Tensor adaptive_beta(const torch::Tensor& entropies,
                            const AdaptiveSoftmaxOptions& options = {});

// Throws unless the options are those of a function; `where` opens the message.
void check_adaptive_options(const char* where, const AdaptiveSoftmaxOptions& options);

}  // namespace kelvin
