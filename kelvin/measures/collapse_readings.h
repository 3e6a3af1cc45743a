#pragma once

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "kelvin/core/reading.h"
#include "kelvin/measures/class_moments.h"

namespace kelvin {

// How often the nearest class mean is not the class that the network predicts.
struct CentreMismatch {
  int64_t samples = 0;
  int64_t from_logits = 0;    // predicted by the logits
  int64_t from_products = 0;  // predicted by W h, without the bias

  void add(const CentreMismatch& other);
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

inline std::optional<double> times(const std::optional<double>& value, double factor) {
  return value ? std::optional(*value * factor) : std::nullopt;
}

// Collects the readings of one matrix of features, without those that are undefined.
class CollapseWriter {
 public:
  explicit CollapseWriter(const Collapse& collapse);

  void add(const char* name, const std::optional<double>& value, const char* formula,
           const Definition& more = Definition::object());
  // Its layer, split and definition are completed.
  void add(Reading reading);
  // The fraction `count` of the samples of `mismatch`; `is_test`: of the test split around means
  // of the training split.
  void add_mismatch(const char* name, const CentreMismatch& mismatch, int64_t count,
                    const char* formula, bool is_test);

  Reading& last() { return readings_.back(); }
  Readings taken() { return std::move(readings_); }

 private:
  const Collapse& collapse_;
  Definition definition_;
  Readings readings_;
};

// Whether class means differ at all; where they are all the same, none is the nearest.
bool has_distinct_means(const Collapse& collapse);

// Neural collapse of features alone: NC1 (variability within classes), NC2 (means as a simplex)
// and NC4 (nearest class mean).
void add_nc1(CollapseWriter& writer, const Collapse& collapse);
void add_nc2(CollapseWriter& writer, const torch::Tensor& gram);
void add_nc4(CollapseWriter& writer, const Collapse& collapse);
// Variants of NC1 and NC2 that papers print.
void add_nc1_variants(CollapseWriter& writer, const Collapse& collapse);
void add_nc2_variants(CollapseWriter& writer, const Collapse& collapse);

// NC1, NC2 and NC4 of a layer's features.
Readings layer_collapse_readings(const Collapse& collapse);

}  // namespace kelvin
