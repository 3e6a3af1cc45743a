#include "kelvin/measures/detectors/detector.h"

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

void check_rows(const std::string& where, const char* what, const torch::Tensor& tensor,
                int64_t rows, int64_t dims) {
  check(tensor.dim() == dims && tensor.size(0) == rows, where, ": ", what, " must have ", rows,
        " rows and ", dims, " dimensions, got ", tensor.sizes());
}

void check_finite(const std::string& where, const char* what, const torch::Tensor& tensor) {
  check(torch::isfinite(tensor).all().item<bool>(), where, ": ", what,
        " of training samples must be finite, have a NaN or an infinity");
}

torch::Tensor in_float64(const torch::Tensor& tensor) {
  return tensor.defined() ? tensor.to(torch::kFloat64) : tensor;
}

// The record in float64, after its shapes were checked.
Record converted(const Detector& detector, const Record& record) {
  const auto& where = detector.name();
  const auto missing = missing_for(detector, record);
  check(missing.empty(), where, ": needs ", missing, ", which the records do not have");
  check(record.logits.dim() == 2, where, ": logits must be [samples, classes], got ",
        record.logits.sizes());
  Record doubles = record;
  doubles.layers.clear();
  doubles.attention.clear();
  doubles.logits = in_float64(record.logits);
  const auto rows = record.logits.size(0);
  if (record.labels.defined()) {
    check_rows(where, "labels", record.labels, rows, 1);
    doubles.labels = record.labels.to(torch::kInt64);
  }
  if (detector.needs().features) {
    check_rows(where, "features", record.features, rows, 2);
    doubles.features = in_float64(record.features);
  }
  if (detector.needs().weight) {
    check(record.weight.dim() == 2 && record.weight.size(0) == record.logits.size(1) &&
              record.weight.size(1) == record.features.size(1),
          where, ": weight must be [", record.logits.size(1), ", ", record.features.size(1),
          "], got ", record.weight.sizes());
    doubles.weight = in_float64(record.weight);
    doubles.bias = record.bias.defined() ? in_float64(record.bias)
                                         : torch::zeros({record.weight.size(0)}, torch::kFloat64);
  }
  return doubles;
}

void check_labels(const std::string& where, const Record& record) {
  if (!record.labels.defined()) return;
  check(((record.labels >= 0) & (record.labels < record.classes)).all().item<bool>(), where,
        ": labels of training samples must be in [0, ", record.classes, ")");
}

}  // namespace

void Detector::fit(const Record& id_train) {
  const auto doubles = converted(*this, id_train);
  check(doubles.logits.size(0) > 0, name_, ": needs training samples, got none");
  check_finite(name_, "logits", doubles.logits);
  if (needs_.features) check_finite(name_, "features", doubles.features);
  check_labels(name_, doubles);
  do_fit(doubles);
  is_fitted_ = true;
}

torch::Tensor Detector::score(const Record& record) const {
  check(is_fitted_, name_, ": must be fitted before it scores");
  auto scores = do_score(converted(*this, record));
  check(!torch::isnan(scores).any().item<bool>(), name_, ": the score of a sample ",
        record.is_ood() ? "of '" + record.ood + "' " : "", "is NaN");
  return scores;
}

std::string missing_for(const Detector& detector, const Record& record) {
  if (!record.logits.defined()) return "logits";
  const auto& needs = detector.needs();
  if (needs.features && !record.features.defined()) return "features";
  if (needs.weight && !record.weight.defined()) return "the classifier's weight";
  return "";
}

Registry<DetectorEntry>& detectors() {
  static Registry<DetectorEntry> registry("detector");
  return registry;
}

}  // namespace kelvin
