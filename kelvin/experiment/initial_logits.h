#pragma once

#include <cstdint>

#include "kelvin/data/dataset.h"
#include "kelvin/model/model.h"

namespace kelvin {

// How large the logits of a network are before training, on a fixed sample of training images.
// Norms are Frobenius norms over sqrt(samples): root mean squares over samples.
struct InitialLogits {
  int64_t samples = 0;
  double norm = 0;           // batch normalisations use batch statistics, as the first step does
  double norm_running = 0;   // they use their running statistics, which are 0 and 1 before training
  double features_norm = 0;  // of the last layer's inputs, batch statistics
  double deviation = 0;      // root mean square of the entries of the last weight
  // Section 5 of Unpacking Softmax: ||M|| <= ||W|| ||A|| = deviation * sqrt(n m) * ||A|| for W of
  // n x m.  A bound: for independent entries of mean 0 the mean of ||M||^2 is smaller by m.
  double bound = 0;
  double expected = 0;  // deviation * sqrt(n) * ||A||
};

// As many samples as a few seconds of one machine allow; at least 32, at most 512.
int64_t affordable_samples(Model& model, const ModelShape& shape);

InitialLogits initial_logits(Model& model, const Dataset& dataset, int64_t samples);

// Scales the end of the network so that `norm` becomes `target`.
void scale_to_norm(Model& model, const Dataset& dataset, double target);

}  // namespace kelvin
