#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/core/settings.h"
#include "kelvin/measures/measure.h"
#include "kelvin/model/record.h"
#include "kelvin/numerics/spectrum.h"
#include "kelvin/ops/tensors.h"

namespace kelvin {

// One weight layer on the sample: W and A A^T of the matrix product W A that it computes.
struct LayerInputs {
  std::string name;
  torch::Tensor weight;  // W [out, in], float64
  GramAccumulator gram;  // of the columns of A
  int64_t stride = 1;    // every so many-th position of each sample is a column

  const torch::Tensor& input_gram() const { return gram.gram(); }
  int64_t columns() const { return gram.rows(); }
  bool has_zero_weight() const { return !weight.any().item<bool>(); }
  bool has_zero_input() const { return gram.frobenius_norm() == 0; }
};

// Sums A A^T of every layer over the first samples it is shown.
//
// A convolution on large maps has so many columns (samples times positions) that their products
// would take longer than the rest of a measure.  So at most `positions` columns of a layer are
// used: of each sample every s-th position, beginning one later than in the sample before, so that
// all positions have their turn, borders no more often than others.  Which columns are used depends
// on the settings and the order of the samples alone, not on how they are split into batches.
class InputGrams {
 public:
  // Reads the settings `samples` and `positions`; `measure` stands before its messages.
  InputGrams(std::string measure, Settings& settings);

  // Returns how many of the record's samples are among those wanted, its first ones.  Of a record
  // that was shown right before nothing is added again.
  int64_t see(const Record& record);
  // Takes what `other` has seen if this one has seen nothing: both see the same sample.
  void merge(const InputGrams& other);

  bool is_empty() const { return layers_.empty(); }
  int64_t samples() const { return samples_; }
  int64_t positions() const { return positions_; }
  int64_t seen() const { return seen_; }
  const std::vector<LayerInputs>& layers() const { return layers_; }

  NamedTensors state() const;
  // What A is: centring, samples, columns, precision.
  Definition definition(const LayerInputs& layer) const;
  // Bytes it holds at most for layers such as those of `example`; all are the measure's that made
  // it, and none another's.
  int64_t memory(const std::string& measure, const Record& example) const;

 private:
  void begin(const Record& record);
  void add(LayerInputs& layer, const LayerRecord& record, int64_t count) const;
  int64_t stride_of(const LayerRecord& record) const;
  int64_t wanted() const { return samples_ - seen_; }

  std::string measure_;
  int64_t samples_ = 512;
  int64_t positions_ = 16384;
  int64_t seen_ = 0;
  std::vector<LayerInputs> layers_;  // in order of execution
  torch::Tensor last_logits_;        // of the record that was shown last
  int64_t last_count_ = 0;           // what `see` said of it
};

// Several measures that look at the same samples and positions sum them once.
class SharedInputGrams {
 public:
  // The same object for the same settings.
  std::shared_ptr<InputGrams> find(const std::string& measure, Settings& settings);

 private:
  std::vector<std::shared_ptr<InputGrams>> all_;
};

// Those that the context shares, or the measure's own if it shares none.
std::shared_ptr<InputGrams> input_grams_of(const MeasureContext& context,
                                           const std::string& measure, Settings& settings);

}  // namespace kelvin
