#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kelvin/core/reading.h"
#include "kelvin/core/registry.h"
#include "kelvin/core/settings.h"
#include "kelvin/model/record.h"
#include "kelvin/ops/tensors.h"

namespace kelvin {

// Which records a measure has to be shown.
struct Needs {
  bool train_split = false;   // besides the test split, which everyone gets
  bool layers = false;        // records of all layers, of the splits that are needed
  bool layer_inputs = false;  // with their weights and inputs, not the outputs alone
  bool attention = false;     // records of all attention layers
  bool ood = false;           // the same splits of the OOD datasets
  bool gradients = false;     // one batch of the training split with the gradients of its loss
  int64_t sample = 0;         // so many samples of the test split are shown apart, to see_sample
};

// Turns a stream of records into readings.  Shown the two halves of a stream and
// merged, two measures give what one gives that saw the whole.
class Measure {
 public:
  virtual ~Measure() = default;
  virtual Needs needs() const = 0;

  // A fixed random sample of the test split, batch by batch, before any update: for what
  // needs a few samples in advance.  It is as large as the largest that anybody needs; its first
  // ones are as random as all of it.
  virtual void see_sample(const Record& /*record*/) {}
  virtual void update(const Record& record) = 0;
  // Once, if gradients are needed: the layers of this record have them.
  virtual void see_gradients(const Record& /*record*/) {}
  // After the last update.  True asks to be shown all of the test split again.
  virtual bool wants_another_pass() { return false; }
  // After all of a training split was shown, that of the dataset trained on or an OOD one's.
  // True asks to be shown it again, in another order, before anything else.
  virtual bool wants_train_again() { return false; }

  // `other` is of the same class, was made with the same settings and has seen the same sample.
  virtual void merge(const Measure& other) = 0;
  virtual NamedTensors state() const = 0;
  virtual Readings compute() const = 0;
  // What is too large for readings: whole spectra, matrices.
  virtual NamedTensors curves() const { return {}; }

  // Bytes it holds at most when it is shown so many samples such as the one in `example`.
  virtual int64_t memory(const Record& /*example*/, int64_t /*samples*/) const { return 0; }
};

class SharedInputGrams;

// What a measure may know about the run besides the records.
struct MeasureContext {
  double temperature = 1;              // of training
  std::string model = {};              // the architecture's name; empty: not known
  std::string loss = "cross_entropy";  // that gradients are of
  uint64_t seed = 0;
  int64_t memory = int64_t{4} << 30;  // bytes that all measures together may hold
  int64_t test_samples = 10'000;      // about how many of the test split will be shown
  // Of the datasets that will be shown, OOD ones too: of the one that has most, and of all
  // together.  0: not known, then those of the dataset trained on.
  int64_t most_classes = 0;
  int64_t all_classes = 0;
  // For measures that are shown the same stream: sums that several of them need are made once.
  std::shared_ptr<SharedInputGrams> input_grams = {};
};

struct MeasureEntry {
  std::string summary;
  std::string reference;
  std::function<std::unique_ptr<Measure>(const MeasureContext&, Settings&)> make;
  // Of the network's outputs as logits of classes: says nothing of a network that is trained by
  // comparing views of images.
  bool needs_classifier = false;
};

Registry<MeasureEntry>& measures();

// Of a measure that is defined on the training split of the dataset trained on, but takes the test
// split instead where there is no other, as in a dump; of OOD datasets it takes the test split
// alone.
class TakesTestSplit {
 public:
  virtual ~TakesTestSplit() = default;

  // What it would lack if `record` were the whole of the test split; empty if nothing.
  virtual std::string missing_in(const Record& record) const = 0;
};

// Whether it needs the training images of OOD datasets.
inline bool needs_ood_training(const Measure& measure) {
  const auto needs = measure.needs();
  return needs.ood && needs.train_split && dynamic_cast<const TakesTestSplit*>(&measure) == nullptr;
}

// Of a measure that needs logits and labels and nothing else of a record: of a dump nothing
// else has to be read for it.
class UsesLogitsAlone {
 public:
  virtual ~UsesLogitsAlone() = default;
};

// Of a measure that looks at logits, labels and the classifier's weights, but not at features or
// layers: of a dump these need not be read for it.
class UsesNoFeatures {
 public:
  virtual ~UsesNoFeatures() = default;
};

// Of a measure whose curves are worth keeping of every snapshot during training, not only of the
// end: small ones that change with it.
class KeepsSnapshots {
 public:
  virtual ~KeepsSnapshots() = default;

  // Under the names that its curves have.
  virtual NamedTensors curves_of_snapshot() const = 0;
};

}  // namespace kelvin
