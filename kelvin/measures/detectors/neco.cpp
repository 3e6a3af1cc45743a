#include "kelvin/ops/neco.h"

#include <torch/types.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/measures/detectors/detector.h"
#include "kelvin/numerics/gram.h"
#include "kelvin/ops/parallel_for.h"

namespace kelvin {
namespace {

struct NecoOptions {
  bool scaler = true;            // standardises every feature
  bool raw_denominator = false;  // the length of the feature as it is, as published for DeiT, Swin
  bool max_logit = false;        // times the largest logit, as published for ViT: its default there
  int64_t dimensions = 0;        // 0: as many as classes
  double explained_variance = 0;  // the fewest dimensions that reach it; 0: not asked for
};

NecoOptions read_options(const std::string& model, Settings& settings) {
  NecoOptions options{.max_logit = model.starts_with("vit")};
  settings.read("scaler", options.scaler);
  settings.read("raw_denominator", options.raw_denominator);
  settings.read("max_logit", options.max_logit);
  settings.read("dimensions", options.dimensions);
  settings.read("explained_variance", options.explained_variance);
  check(options.dimensions >= 0, settings.full_name("dimensions"), ": must not be below 0, got ",
        options.dimensions);
  check(options.explained_variance >= 0 && options.explained_variance <= 1,
        settings.full_name("explained_variance"), ": must be in (0, 1], or 0 for none, got ",
        options.explained_variance);
  check(options.dimensions == 0 || options.explained_variance == 0,
        settings.full_name("explained_variance"), ": must be 0 if dimensions are given, got both");
  return options;
}

// How much of a feature lies in the leading principal directions of the training features.
class Neco : public Detector {
 public:
  explicit Neco(const NecoOptions& options)
      : Detector("neco", {.features = true, .classifier = options.max_logit}), options_(options) {}

  Definition definition() const override {
    Definition definition = {{"scaler", options_.scaler},
                             {"raw_denominator", options_.raw_denominator},
                             {"max_logit", options_.max_logit},
                             {"score", score_in_words()}};
    if (options_.explained_variance > 0) {
      definition["explained_variance"] = options_.explained_variance;
    }
    if (!axes_.mean.defined()) return definition;
    definition["dimensions"] = count_;
    definition["rank"] = axes_.rank.item<int64_t>();
    definition["tells_nothing"] = tells_nothing();
    return definition;
  }

 private:
  void do_fit(const Record& id_train) override {
    const auto& features = id_train.features;
    check(features.size(0) >= 2, name(), ": needs at least 2 training samples, got ",
          features.size(0));
    const auto mean = features.mean(0);
    axes_ = principal_axes(mean, covariance_around(mean, features), options_.scaler);
    // Beyond the rank directions are arbitrary, and so would be the scores of OOD samples.
    count_ = std::min(wanted(axes_.variances, id_train.classes), axes_.rank.item<int64_t>());
  }

  torch::Tensor do_score(const Record& record) const override {
    const auto fraction = row_numbers(record.features.size(0), [&](int64_t begin, int64_t end) {
      return neco_fractions(axes_, count_, denominator(), record.features.slice(0, begin, end));
    });
    return options_.max_logit ? fraction * record.logits.amax(1) : fraction;
  }

  NecoDenominator denominator() const {
    return options_.scaler && !options_.raw_denominator ? NecoDenominator::scaled
                                                        : NecoDenominator::raw;
  }

  bool tells_nothing() const {
    if (options_.max_logit) return false;
    return count_ == 0 ||
           (denominator() == NecoDenominator::scaled && count_ == axes_.mean.size(0));
  }

  std::string score_in_words() const {
    const std::string above = options_.scaler ? "||P (h - mean) / deviation||" : "||P (h - mean)||";
    const std::string below =
        denominator() == NecoDenominator::scaled ? "||(h - mean) / deviation||" : "||h||";
    return above + " / " + below + (options_.max_logit ? " * max M" : "");
  }

  static torch::Tensor covariance_around(const torch::Tensor& mean, const torch::Tensor& features) {
    const auto scatter = parallel_gram(
        features.size(0), features.size(1),
        [&](int64_t begin, int64_t end) { return features.slice(0, begin, end) - mean; });
    return scatter / static_cast<double>(features.size(0));
  }

  int64_t wanted(const torch::Tensor& variances, int64_t classes) const {
    if (options_.explained_variance == 0) {
      return options_.dimensions > 0 ? options_.dimensions : classes;
    }
    const auto reached = variances.cumsum(0) / variances.sum();
    // A sum of all variances may round to less than all of it.
    const auto needed = options_.explained_variance * (1 - 1e-12);
    return (reached < needed).sum().item<int64_t>() + 1;
  }

  NecoOptions options_;
  PrincipalAxes axes_;
  int64_t count_ = 0;  // of directions
};

const bool neco_registered = detectors().add(
    "neco", {
                .summary = "fraction of a feature in the principal space of training features",
                .reference = "NECO, arXiv 2310.06823",
                .make =
                    [](const MeasureContext& context, Settings& settings) {
                      return std::make_unique<Neco>(read_options(context.model, settings));
                    },
            });

}  // namespace
}  // namespace kelvin
