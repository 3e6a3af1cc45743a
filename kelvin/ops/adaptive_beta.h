#pragma once

#include <torch/types.h>

#include <array>
#include <string>

#include "kelvin/kernels/adaptive_softmax.h"

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

// The one of this name: fall, hold or grow.  `where` opens the message that there is no other.
PastThePeak past_the_peak_named(const std::string& where, const std::string& name);

// Throws unless the options are those of a function; `where` opens the message.
void check_adaptive_options(const char* where, const AdaptiveSoftmaxOptions& options);

// Beta at these entropies.
torch::Tensor adaptive_beta(const torch::Tensor& entropies,
                            const AdaptiveSoftmaxOptions& options = {});

// The same for kernels, but for the temperature.
AdaptiveCurve adaptive_curve(const AdaptiveSoftmaxOptions& options);

// Whether nothing that kernels multiply overflows in single precision.
bool suits_adaptive_kernel(const AdaptiveSoftmaxOptions& options);

}  // namespace kelvin
