#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kelvin/core/reading.h"
#include "kelvin/core/registry.h"
#include "kelvin/core/settings.h"
#include "kelvin/math/named_tensors.h"
#include "kelvin/representations/record.h"

namespace kelvin {

// Which records a measure has to be shown.
struct Needs {
  bool train_split = false;  // besides the test split, which everyone gets
  bool layers = false;       // records of all layers
  bool attention = false;    // records of all attention layers
  bool ood = false;          // the same splits of the foreign datasets
};

// Turns a stream of records into readings.  Shown the two halves of a stream and
// merged, two measures give what one gives that saw the whole.
class Measure {
 public:
  virtual ~Measure() = default;
  virtual Needs needs() const = 0;
  virtual void update(const Record& record) = 0;
  // `other` is of the same class and was made with the same settings.
  virtual void merge(const Measure& other) = 0;
  virtual NamedTensors state() const = 0;
  virtual Readings compute() const = 0;
};

// What a measure may know about the run besides the records.
struct MeasureContext {
  double temperature = 1;  // of training
  uint64_t seed = 0;
};

struct MeasureEntry {
  std::string summary;
  std::string reference;
  std::function<std::unique_ptr<Measure>(const MeasureContext&, Settings&)> make;
};

Registry<MeasureEntry>& measures();

}  // namespace kelvin
