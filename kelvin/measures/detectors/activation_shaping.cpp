#include "kelvin/measures/detectors/activation_shaping.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/measures/detectors/probability_scores.h"
#include "kelvin/ops/parallel_for.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {
namespace {

class ShapedEnergy : public Detector {
 public:
  ShapedEnergy(const ActivationShaping& shaping, const MeasureContext& context, Settings& settings)
      : Detector(shaping.name, {.weight = true}),
        shaping_(shaping),
        temperature_(context.temperature) {
    check_temperature(shaping_.name.c_str(), temperature_);
    settings.read("percentile", shaping_.percentile);
    check(shaping_.percentile >= 0 && shaping_.percentile < 1, settings.full_name("percentile"),
          ": must be a share from 0 to below 1, got ", shaping_.percentile);
  }

  Definition definition() const override {
    return {{"score", "T logsumexp(M' / T), M' of shaped features"},
            {"shaping", shaping_.shaping},
            {"percentile", shaping_.percentile},
            {"temperature", temperature_},
            // True: outside of what the method was published for.
            {"negative_training_features", has_negative_}};
  }

 private:
  void do_fit(const Record& id_train) override {
    has_negative_ = (id_train.features < 0).any().item<bool>();
  }

  torch::Tensor do_score(const Record& record) const override {
    const auto top = top_activations(record.features, shaping_.percentile);
    const auto shaped = shaping_.shaped(record.features, top);
    check(!(torch::isfinite(record.features) & torch::isinf(shaped)).any().item<bool>(), name(),
          ": shaped features must be finite, overflow for a sample at a percentile of ",
          shaping_.percentile, "; a lower one keeps more activations");
    return energy(recomputed_logits(record, shaped), temperature_);
  }

  ActivationShaping shaping_;
  double temperature_;
  bool has_negative_ = false;
};

// Marks the `count` largest of a row, the first of equal ones: the choice must not depend on the
// machine.  All of a row that has a NaN, so that its score is one.
void keep_largest(const double* row, int64_t count, std::vector<double>& scratch, bool* is_kept) {
  const auto dims = static_cast<int64_t>(scratch.size());
  std::copy_n(row, dims, scratch.begin());
  if (std::any_of(scratch.begin(), scratch.end(), [](double value) { return std::isnan(value); })) {
    std::fill_n(is_kept, dims, true);
    return;
  }
  const auto last = scratch.begin() + (count - 1);
  std::nth_element(scratch.begin(), last, scratch.end(), std::greater<>());
  const double smallest = *last;
  auto equals =
      count - std::count_if(scratch.begin(), last, [&](double value) { return value > smallest; });
  for (int64_t i = 0; i < dims; ++i) {
    is_kept[i] = row[i] > smallest || (row[i] == smallest && equals-- > 0);
  }
}

}  // namespace

TopActivations top_activations(const torch::Tensor& features, double percentile) {
  const auto dims = features.size(1);
  const auto removed = static_cast<int64_t>(std::nearbyint(percentile * static_cast<double>(dims)));
  const auto count = std::min(dims, std::max(int64_t{1}, dims - removed));
  const auto values = features.to(torch::kCPU, torch::kFloat64).contiguous();
  auto is_kept = torch::zeros(values.sizes(), torch::kBool);
  for_row_blocks(values.size(0), [&](int64_t begin, int64_t end) {
    std::vector<double> scratch(static_cast<size_t>(dims));
    for (auto row = begin; row < end; ++row) {
      keep_largest(values.data_ptr<double>() + row * dims, count, scratch,
                   is_kept.data_ptr<bool>() + row * dims);
    }
  });
  return {.is_kept = is_kept.to(features.device()), .count = count};
}

torch::Tensor pruned(const torch::Tensor& features, const TopActivations& top) {
  return torch::where(top.is_kept, features, torch::zeros_like(features));
}

torch::Tensor sharpening(const torch::Tensor& features, const TopActivations& top) {
  const auto kept = pruned(features, top).sum(1, /*keepdim=*/true);
  const auto all = features.sum(1, /*keepdim=*/true);
  return torch::where(kept > 0, (all / kept).exp(), torch::zeros_like(kept));
}

std::unique_ptr<Detector> shaping_detector(const ActivationShaping& shaping,
                                           const MeasureContext& context, Settings& settings) {
  return std::make_unique<ShapedEnergy>(shaping, context, settings);
}

}  // namespace kelvin
