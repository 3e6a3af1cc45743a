#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <string>

#include "kelvin/core/reading.h"
#include "kelvin/core/registry.h"
#include "kelvin/core/settings.h"
#include "kelvin/measures/measure.h"
#include "kelvin/representations/record.h"

namespace kelvin {

// Tells samples of the training distribution from foreign ones.
class Detector {
 public:
  virtual ~Detector() = default;
  // Features, logits and labels of training samples in one record.
  virtual void fit(const Record& id_train) = 0;
  // [samples] in float64; higher means in distribution.
  virtual torch::Tensor score(const Record& record) const = 0;
  virtual Definition definition() const = 0;
};

struct DetectorEntry {
  std::string summary;
  std::string reference;
  std::function<std::unique_ptr<Detector>(const MeasureContext&, Settings&)> make;
};

Registry<DetectorEntry>& detectors();

}  // namespace kelvin
