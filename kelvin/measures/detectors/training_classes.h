#pragma once

#include "kelvin/core/check.h"
#include "kelvin/math/class_means.h"
#include "kelvin/measures/detectors/detector.h"

namespace kelvin {

// Means of the training features of each class; an Error if there are no labels.
inline ClassMeans training_classes(const Detector& detector, const Record& id_train) {
  check(id_train.labels.defined(), detector.name(),
        ": needs labels of training samples, which the records do not have");
  return class_means(id_train.features, id_train.labels, id_train.classes);
}

}  // namespace kelvin
