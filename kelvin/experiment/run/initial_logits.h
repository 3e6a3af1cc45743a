#pragma once

#include <cstdint>
#include <optional>

#include "kelvin/data/dataset.h"
#include "kelvin/model/model.h"

namespace kelvin {

// How large the logits of a network are before training, on a fixed sample of training images.
// Norms are Frobenius norms over sqrt(samples): root mean squares over samples.
struct InitialLogits {
  int64_t samples = 0;
  // Batch normalisations use batch statistics, as the first step does; those of pretrained weights
  // use the running statistics they were trained to.
  double norm = 0;
  double norm_running = 0;   // running statistics always, which are 0 and 1 before training
  double features_norm = 0;  // of the last layer's inputs, as `norm`
  double deviation = 0;      // root mean square of the entries of the last weight
  // Section 5 of Unpacking Softmax: ||M|| <= ||W|| ||A|| = deviation * sqrt(n m) * ||A|| for W of
  // n x m, and the bias on top.  A bound: for independent entries of mean 0 the mean of ||W A||^2
  // is smaller by m, which gives `expected`.  Neither for logits that are normalised.
  std::optional<double> bound = {};
  std::optional<double> expected = {};
};

// As many samples as a few seconds of one machine allow; at least 32, at most 1024.
int64_t affordable_samples(Model& model, const ModelShape& shape);

InitialLogits initial_logits(Model& model, const Dataset& dataset, int64_t samples,
                             bool is_pretrained = false);

// Scales the end of the network so that `norm` becomes `target`.
void scale_to_norm(Model& model, const Dataset& dataset, double target, bool is_pretrained = false);

}  // namespace kelvin
