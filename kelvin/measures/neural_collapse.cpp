#include "kelvin/numerics/neural_collapse.h"

#include <torch/types.h>

#include <algorithm>
#include <optional>

#include "kelvin/core/check.h"
#include "kelvin/measures/class_moments.h"
#include "kelvin/measures/classifier_collapse.h"
#include "kelvin/measures/collapse_readings.h"
#include "kelvin/measures/collapse_sums.h"
#include "kelvin/measures/measure.h"
#include "kelvin/ops/layer_matrices.h"

namespace kelvin {
namespace {

constexpr const char* kCollapseName = "neural_collapse";

int64_t count_of(const torch::Tensor& flags) { return flags.sum().item<int64_t>(); }

// NC0 to NC5 of the classifier's input, and NC1, NC2 and NC4 of every layer, on the training split,
// or on the test split if nothing else is shown.  The first pass gives the class means, the second
// what lies around them; without a second one there are the readings that need means alone.
class NeuralCollapse : public Measure, public TakesTestSplit {
 public:
  NeuralCollapse(const MeasureContext& context, Settings& settings) : context_(context) {
    settings.read("cutoff", cutoff_);
    check(cutoff_ > 0 && cutoff_ < 1, settings.full_name("cutoff"), ": must be in (0, 1), got ",
          cutoff_);
  }

  Needs needs() const override { return {.train_split = true, .layers = true, .ood = true}; }

  std::string missing_in(const Record& record) const override {
    const bool has_classes =
        record.labels.numel() > 0 && (record.labels != record.labels[0]).any().item<bool>();
    return has_classes ? "" : "samples of at least two classes";
  }

  void update(const Record& record) override {
    if (record.is_ood()) {
      // Shown again with a test split that is, they would count twice.
      const bool is_again = split_ == Split::test && phase_ != Phase::means;
      if (record.split == Split::test && !is_again) see_ood(record);
      return;
    }
    const bool is_train = record.split == Split::train;
    if (!is_train && split_ == Split::train) {
      if (phase_ != Phase::means) see_test(record);
      return;
    }
    if (is_train && split_ == Split::test) start_again();
    if (phase_ == Phase::done) return;
    split_ = record.split;
    see_own(record);
  }

  bool wants_train_again() override { return is_another_pass_due(Split::train); }
  bool wants_another_pass() override { return is_another_pass_due(Split::test); }

  // Halves of the first pass add up to its means.  Halves of the second are sums around the means
  // of the whole first pass, which both must have, so that what was merged is first merged into
  // each that goes on; halves that went through both passes by themselves have other means, and
  // cannot be merged.
  void merge(const Measure& other) override {
    const auto& theirs = static_cast<const NeuralCollapse&>(other);
    const bool is_better = theirs.split_ == Split::train && split_ == Split::test;
    if (theirs.split_ && (!split_ || is_better)) {
      adopt(theirs);
    } else if (theirs.split_ == split_) {
      check((phase_ == Phase::means) == (theirs.phase_ == Phase::means), kCollapseName,
            ": can merge only measures in the same pass");
      merge_features(theirs);
    }
    // In the second pass over a test split both have them from the first.
    if (split_ == Split::test && phase_ != Phase::means && !ood_.empty()) return;
    for (const auto& [name, sums] : theirs.ood_) {
      const auto [found, is_new] = ood_.emplace(name, sums);
      if (!is_new) found->second.merge(sums);
    }
  }

  NamedTensors state() const override {
    NamedTensors tensors;
    for (const auto& seen : features_) seen.add_state(tensors);
    for (const auto& [name, sums] : ood_) {
      tensors["ood/" + name + "/class_sums"] = sums.sums();
      tensors["ood/" + name + "/class_counts"] = sums.counts();
    }
    return tensors;
  }

  Readings compute() const override {
    check(split_.has_value(), kCollapseName,
          ": no records of the training or test split were shown");
    Readings readings;
    for (const auto& seen : features_) {
      const auto collapse = collapse_of(seen);
      auto more = seen.layer.empty() ? classifier_collapse_readings(collapse)
                                     : layer_collapse_readings(collapse);
      for (auto& reading : more) readings.push_back(std::move(reading));
    }
    return readings;
  }

  int64_t memory(const Record& example, int64_t /*samples*/) const override {
    return collapse_bytes(example, context_.memory);
  }

 private:
  enum class Phase { means, spread, done };

  bool is_another_pass_due(Split split) {
    if (split_ != split || phase_ == Phase::done) return false;
    if (phase_ == Phase::spread) {
      phase_ = Phase::done;
      return false;
    }
    for (auto& seen : features_) {
      // Readings choose among all directions that are there.
      seen.start_second_pass(std::min(cutoff_, kEigenvalueRounding));
    }
    phase_ = Phase::spread;
    return true;
  }

  void start_again() {
    features_.clear();
    phase_ = Phase::means;
    split_.reset();
  }

  static void check_record(const Record& record) {
    if (record.labels.numel() == 0) return;
    const auto lowest = record.labels.min().item<int64_t>();
    const auto highest = record.labels.max().item<int64_t>();
    check(lowest >= 0 && highest < record.classes, kCollapseName, ": labels must be in [0, ",
          record.classes, "), got ", lowest < 0 ? lowest : highest);
    check(torch::isfinite(record.logits).all().item<bool>(), kCollapseName,
          ": logits must be finite, have a NaN or an infinity");
  }

  static void check_finite(const std::string& layer, const torch::Tensor& rows) {
    // The sum of a row is not finite as soon as one number is not.
    check(torch::isfinite(rows.sum(1)).all().item<bool>(), kCollapseName, ": ",
          collapse_place(layer), " must be finite, has a NaN or an infinity");
  }

  // The projected rows of every matrix of features; makes room for them the first time.
  std::vector<torch::Tensor> rows_of(const Record& record) {
    check_record(record);
    const auto shown = collapse_rows(record);
    check(!shown.empty(), kCollapseName, ": needs features or records of layers, got neither");
    if (features_.empty()) {
      classes_ = record.classes;
      features_ = collapse_sums(record, context_.memory, context_.seed);
    }
    check(shown.size() == features_.size(), kCollapseName,
          ": every batch must have the same layers, ", features_.size(), ", got ", shown.size());
    std::vector<torch::Tensor> rows;
    for (size_t i = 0; i < shown.size(); ++i) {
      const auto& seen = features_[i];
      check(shown[i].layer == seen.layer && shown[i].rows.size(1) == seen.sketch.dims(),
            kCollapseName, ": every batch must have the same layers; ", collapse_place(seen.layer),
            " of ", seen.sketch.dims(), " features became ", collapse_place(shown[i].layer), " of ",
            shown[i].rows.size(1));
      check_finite(seen.layer, shown[i].rows);
      rows.push_back(seen.sketch.apply(shown[i].rows));
    }
    return rows;
  }

  void see_own(const Record& record) {
    remember_classifier(record);
    const auto rows = rows_of(record);
    for (size_t i = 0; i < rows.size(); ++i) {
      auto& seen = features_[i];
      if (phase_ == Phase::means) {
        seen.sums->update(rows[i], record.labels);
      } else {
        seen.own.add(mismatch(record, seen.spread->update(rows[i], record.labels)));
      }
    }
  }

  // The test split around the means of the training split: NC4 alone.
  void see_test(const Record& record) {
    const auto rows = rows_of(record);
    for (size_t i = 0; i < rows.size(); ++i) {
      auto& seen = features_[i];
      seen.test.add(mismatch(record, seen.spread->nearest(rows[i])));
    }
  }

  void see_ood(const Record& record) {
    if (!record.features.defined()) return;
    check_record(record);
    const auto rows = feature_rows(record.features);
    check_finite("", rows);
    const auto sums = ood_.try_emplace(record.ood, record.classes, rows.size(1)).first;
    sums->second.update(rows, record.labels);
  }

  void remember_classifier(const Record& record) {
    if (!record.weight.defined() || !record.features.defined()) return;
    weight_ = record.weight.to(torch::kFloat64);
    bias_ = record.bias.defined() ? record.bias.to(torch::kFloat64) : torch::Tensor();
    check(weight_.dim() == 2 && weight_.size(0) >= record.classes &&
              weight_.size(1) == record.features.size(1),
          kCollapseName, ": the classifier's weight must be [", record.classes, ", ",
          record.features.size(1), "], got ", weight_.sizes());
    check(torch::isfinite(weight_).all().item<bool>(), kCollapseName,
          ": the classifier's weight must be finite, has a NaN or an infinity");
  }

  CentreMismatch mismatch(const Record& record, const torch::Tensor& nearest) const {
    CentreMismatch result{.samples = nearest.size(0),
                          .from_logits = count_of(record.logits.argmax(1) != nearest)};
    if (weight_.defined() && record.features.defined()) {
      const auto products = record.features.to(torch::kFloat64).matmul(weight_.t());
      result.from_products = count_of(products.argmax(1) != nearest);
    }
    return result;
  }

  void adopt(const NeuralCollapse& theirs) {
    split_ = theirs.split_;
    phase_ = theirs.phase_;
    classes_ = theirs.classes_;
    features_ = theirs.features_;
    weight_ = theirs.weight_;
    bias_ = theirs.bias_;
  }

  void merge_features(const NeuralCollapse& theirs) {
    check(features_.size() == theirs.features_.size(), kCollapseName,
          ": can merge only measures of the same layers");
    for (size_t i = 0; i < features_.size(); ++i) features_[i].merge(theirs.features_[i]);
  }

  Collapse collapse_of(const CollapseSums& seen) const {
    Collapse collapse{.layer = seen.layer,
                      .split = name_of(*split_),
                      .classes = classes_,
                      .features = seen.sketch.dims(),
                      .width = seen.sketch.width(),
                      .cutoff = cutoff_,
                      .centres = seen.spread ? seen.spread->centres() : ClassCentres(*seen.sums),
                      .spread = seen.spread,
                      .own = seen.own,
                      .test = seen.test};
    check(collapse.centres.size() >= 2, kCollapseName,
          ": needs samples of at least 2 classes, got ", collapse.centres.size());
    if (seen.spread) {
      check(seen.spread->counts().equal(seen.spread->centres().counts), kCollapseName,
            ": the second pass must show the samples of the first, ", collapse.centres.samples(),
            ", got ", seen.spread->samples());
    }
    if (seen.layer.empty()) {
      collapse.weight = weight_;
      collapse.bias = bias_;
      collapse.ood = ood_;
    }
    return collapse;
  }

  MeasureContext context_;
  double cutoff_ = kEigenvalueCutoff;
  std::optional<Split> split_;  // that means are of
  Phase phase_ = Phase::means;
  int64_t classes_ = 0;
  std::vector<CollapseSums> features_;    // the classifier's input, then all layers in order
  torch::Tensor weight_;                  // undefined if not known
  torch::Tensor bias_;                    // undefined if there is none
  std::map<std::string, ClassSums> ood_;  // of the classifier's input, by dataset
};

const bool neural_collapse_registered = measures().add(
    kCollapseName,
    {
        .summary = "neural collapse, NC0 to NC5 in the variants that papers print: classes as "
                   "points, their means as a simplex, the classifier as their dual",
        .reference = "Prevalence of neural collapse, doi 10.1073/pnas.2015509117",
        .make =
            [](const MeasureContext& context, Settings& settings) {
              return std::make_unique<NeuralCollapse>(context, settings);
            },
        .needs_classifier = true,
    });

}  // namespace
}  // namespace kelvin
