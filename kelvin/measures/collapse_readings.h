#pragma once

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "kelvin/core/reading.h"
#include "kelvin/measures/class_moments.h"

namespace kelvin {

// How often the nearest class mean is not the class that the network predicts.
struct CentreMismatch {
  int64_t samples = 0;
  int64_t from_logits = 0;    // predicted by the logits
  int64_t from_products = 0;  // predicted by W h, without the bias
};

// All that is known about the classes in one matrix of features.
struct Collapse {
  std::string layer = {};  // empty for the classifier's input
  std::string split = {};  // that the means are of
  int64_t classes = 0;     // of the dataset, with and without samples
  int64_t features = 0;
  int64_t width = 0;  // fewer than features if they were projected
  double cutoff = 0;  // of eigenvalues
  ClassCentres centres;
  std::optional<ClassSpread> spread = {};  // once there was a second pass
  CentreMismatch own = {};                 // of the samples that the means are of
  CentreMismatch test = {};                // of the test split, if the means are not
  // For the classifier's input only:
  torch::Tensor weight = {};                  // [classes, features]; undefined if not known
  torch::Tensor bias = {};                    // undefined if there is none
  std::map<std::string, ClassSums> ood = {};  // by the name of the dataset
};

// Neural collapse in a layer's features: NC1, NC2 and NC4.
Readings layer_collapse_readings(const Collapse& collapse);

// That of the classifier's input, with all variants and, if its weight is known, NC0, NC3 and NC2
// of the weight; NC5 for every OOD dataset.
Readings classifier_collapse_readings(const Collapse& collapse);

// OrthoDev (NC5) of the OOD dataset `ood`, whose `samples` features [dims] add up to `sum`, against
// class means [classes, dims] that are not centred.  Nothing if a mean has no direction.
std::optional<Reading> orthodev_reading(const torch::Tensor& class_means, const std::string& ood,
                                        const torch::Tensor& sum, int64_t samples);

}  // namespace kelvin
