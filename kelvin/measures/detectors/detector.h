#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <string>

#include "kelvin/core/check.h"
#include "kelvin/core/reading.h"
#include "kelvin/core/registry.h"
#include "kelvin/core/settings.h"
#include "kelvin/measures/measure.h"
#include "kelvin/model/record.h"
#include "kelvin/numerics/class_means.h"

namespace kelvin {

// What a detector needs besides logits and labels.
struct DetectorNeeds {
  bool features = false;
  bool weight = false;  // the classifier's, so that logits = features * weight^T + bias
  // Whether the score takes the outputs for logits of classes, as it does with the weight or
  // without features.
  bool classifier = false;
};

// Tells samples of the training distribution from OOD ones.
class Detector {
 public:
  virtual ~Detector() = default;

  const std::string& name() const { return name_; }
  const DetectorNeeds& needs() const { return needs_; }

  // Features, logits and labels of training samples in one record.
  void fit(const Record& id_train);
  // [samples] in float64; higher means in distribution.  An infinity is a score like any other; an
  // Error if one is NaN.
  torch::Tensor score(const Record& record) const;
  // What the score means, with every option; of a fitted detector also what it has found.
  virtual Definition definition() const = 0;

 protected:
  explicit Detector(std::string name, DetectorNeeds needs = {})
      : name_(std::move(name)),
        needs_{.features = needs.features || needs.weight,
               .weight = needs.weight,
               .classifier = needs.classifier || needs.weight || !needs.features} {}

 private:
  // What a detector implements.  Both are given what it needs, in float64 (labels: int64), with as
  // many rows in each.  Training samples have at least one row, finite numbers, and labels within
  // `classes`.
  virtual void do_fit(const Record& /*id_train*/) {}
  virtual torch::Tensor do_score(const Record& record) const = 0;

  std::string name_;
  DetectorNeeds needs_;
  bool is_fitted_ = false;
};

// What of the detector's needs the record does not have, in words; empty if nothing.
std::string missing_for(const Detector& detector, const Record& record);

struct DetectorEntry {
  std::string summary;
  std::string reference;
  std::function<std::unique_ptr<Detector>(const MeasureContext&, Settings&)> make;
};

Registry<DetectorEntry>& detectors();

// Means of the training features of each class; an Error if there are no labels.
inline ClassMeans training_classes(const Detector& detector, const Record& id_train) {
  check(id_train.labels.defined(), detector.name(),
        ": needs labels of training samples, which the records do not have");
  return class_means(id_train.features, id_train.labels, id_train.classes);
}

}  // namespace kelvin
