#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/math/named_tensors.h"
#include "kelvin/measures/probe_features.h"
#include "kelvin/representations/record.h"

namespace kelvin {

enum class ProbeProtocol { diagnose, reproduce, published };

struct ProbeOptions {
  ProbeProtocol protocol = ProbeProtocol::diagnose;
  ProbeTap tap = ProbeTap::output;
  int64_t pool = 2;  // maps are averaged to pool x pool by diagnose
  int64_t max_iterations = 100;
  double tolerance = 1e-4;  // of the gradient; below it accuracies no longer change
  int64_t passes = 0;       // over the training split, of the protocols that stream it
  int64_t batch = 0;        // samples of a minibatch
  double rate = 1e-3;       // of Adam
  double threshold = 0.99;  // share of the last layer's accuracy that counts as reaching it
  // Candidates from strong to weak, chosen between on held-out training data; features are
  // standardised.
  std::vector<double> l2 = {1e-1, 1e-2, 1e-3};
  bool keep_weights = false;  // of the probes for the dataset trained on, among the curves
  uint64_t seed = 0;
};

// The share of samples that always naming the most frequent class gets right.
double chance_of(const torch::Tensor& labels);

// What one layer's probe did.
struct ProbeResult {
  std::string layer;
  torch::Tensor hits;  // [samples of the test split] bool
  Definition definition;
  double chance = 0;  // chance_of the test split's labels
  // scores = rows * weight^T + bias, of rows as they are, not standardised.
  torch::Tensor weight = {};  // [classes, features]
  torch::Tensor bias = {};    // [classes]
};

// The probes of all layers for one population: the dataset trained on, or a foreign one.
class Probes {
 public:
  virtual ~Probes() = default;
  virtual void see_train(const Record& record) = 0;
  virtual void see_test(const Record& record) = 0;
  virtual bool wants_train_again() { return false; }
  // `other` is of the same class and population.
  virtual void merge(const Probes& other) = 0;
  virtual NamedTensors state() const = 0;
  virtual bool saw_both_splits() const = 0;
  // In order of execution.
  virtual std::vector<ProbeResult> results() const = 0;
};

}  // namespace kelvin
