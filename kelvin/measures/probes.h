#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/measures/measure.h"
#include "kelvin/model/record.h"
#include "kelvin/ops/tensors.h"

namespace kelvin {

// Where a probe reads a layer.
enum class ProbeTap { output, before_add };

// "after ...", of the place a layer is really read at; before_add is that of its output where
// nothing is added.
std::string tap_text(const LayerRecord& layer, ProbeTap tap);
// The same of all layers together.
std::string tap_text(ProbeTap tap);

// One float32 row for each sample: of all of it, or of maps averaged to at most pool x pool and
// averaged tokens.  Flattened rows share the layer's memory where they can.
torch::Tensor flattened_rows(const LayerRecord& layer, ProbeTap tap);
torch::Tensor pooled_rows(const LayerRecord& layer, ProbeTap tap, int64_t pool);

// An Error unless labels and classes of a record can be probed for.
void check_labels(const Record& record);
// An Error if there are fewer training samples than classes: most could never be named.
void check_enough_samples(int64_t samples, int64_t classes);

// The first layer, counted from 1, whose probe reaches `threshold` times the accuracy of the last.
size_t first_sufficient(const std::vector<double>& accuracies, double threshold);

// kappa: the first layer whose probe reaches `threshold` times the accuracy of
// layer `last` (counted from 1), over the number of layers up to `last`.
double effective_depth(const std::vector<double>& accuracies, size_t last, double threshold);

// rho: (best accuracy over layers - the last layer's) / best.
double generalisation_drop(const std::vector<double>& accuracies);

enum class ProbeProtocol { diagnose, reproduce, published };

struct ProbeOptions {
  ProbeProtocol protocol = ProbeProtocol::diagnose;
  ProbeTap tap = ProbeTap::output;
  int64_t pool = 2;  // maps are averaged to pool x pool by diagnose
  int64_t max_iterations = 100;
  double tolerance = 1e-4;      // of the gradient; below it accuracies no longer change
  int64_t passes = 0;           // over the training split, of the protocols that stream it
  int64_t batch = 0;            // samples of a minibatch
  double learning_rate = 1e-3;  // of Adam
  double threshold = 0.99;      // fraction of the last layer's accuracy that counts as reaching it
  // Candidates from strong to weak, chosen between on held-out training data; features are
  // standardised.
  std::vector<double> l2 = {1e-1, 1e-2, 1e-3};
  bool keep_weights = false;  // of the probes for the dataset trained on, among the curves
  uint64_t seed = 0;
};

// The fraction of samples that always naming the most frequent class gets right.
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

// The probes of all layers for one population: the dataset trained on, or an OOD one.
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
  // Bytes that they hold at most of so many samples such as that of `example`.
  virtual int64_t memory(const Record& example, int64_t samples,
                         const MeasureContext& known) const = 0;
};

// probe_accuracy of every layer, each with its interval; then kappa, or on an OOD dataset `ood`
// rho and ood_retained.  Intervals come from one set of resampled test samples for all layers.
Readings probe_readings(const std::vector<ProbeResult>& probes, const std::string& ood,
                        const ProbeOptions& options);

}  // namespace kelvin
