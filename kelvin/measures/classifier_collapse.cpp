#include "kelvin/measures/classifier_collapse.h"

#include <torch/types.h>

#include <optional>
#include <string>

#include "kelvin/numerics/neural_collapse.h"

namespace kelvin {
namespace {

// Of the weight alone, all of its rows.
void add_weight(CollapseWriter& writer, const torch::Tensor& weight) {
  const auto classes = static_cast<double>(weight.size(0));
  const auto gram = weight.matmul(weight.t());
  const auto sum = weight.sum(0).norm().item<double>();
  const Definition rows = {{"matrix", "weight W of the classifier (class x feature)"},
                           {"classes", weight.size(0)},
                           {"missing_classes", 0},
                           {"centring", "none"}};
  writer.add("nc0_weight_sum", sum / static_cast<double>(weight.size(1)), "|W^T 1| / p", rows);
  writer.add("nc0_weight_sum_squared", sum * sum / classes, "|W^T 1|^2 / K", rows);
  writer.add("nc2_weight_equinorm", equinorm(gram),
             "std_c |w_c| / mean_c |w_c|, std over K - 1, w_c rows of W", rows);
  writer.add("nc2_weight_equiangular", equiangularity(gram),
             "mean over i != j of |cos(w_i, w_j) + 1 / (K - 1)|, w_c rows of W", rows);
  writer.add("nc2_weight_etf_error", etf_error(gram), "|W W^T / |W W^T| - ETF|", rows);
  writer.add("nc2_weight_etf_error_per_pair", times(etf_error(gram), 1 / (classes * classes)),
             "|W W^T / |W W^T| - ETF| / K^2", rows);
}

// Of weight and means together: the rows of the classes that have samples.
void add_duality(CollapseWriter& writer, const Collapse& collapse) {
  const auto& means = collapse.centres.centred;
  const auto weight = collapse.weight.index_select(0, collapse.centres.classes);
  const auto difference = direction_difference(weight, means);
  const auto dual = etf_error(weight.matmul(means.t()));
  const auto pairs = static_cast<double>(weight.size(0) * weight.size(0));
  writer.add("nc3_self_duality",
             difference ? std::optional(*difference * *difference) : std::nullopt,
             "|W^T / |W| - M / |M||^2");
  writer.add("nc3_self_duality_norm", difference, "|W^T / |W| - M / |M||");
  writer.add("nc3_self_duality_per_entry",
             times(difference, 1 / static_cast<double>(weight.numel())),
             "|W^T / |W| - M / |M|| / (K p)");
  writer.add("nc3_dual_etf_error", dual, "|W M / |W M| - ETF|");
  writer.add("nc2_product_etf_error", times(dual, 1 / pairs), "|W M / |W M| - ETF| / K^2");
  const auto shifted = means - collapse.centres.sample_mean();
  writer.add("nc3_dual_etf_error_weighted_mean", etf_error(weight.matmul(shifted.t())),
             "|W M / |W M| - ETF| with mu_G = sum h / N", {{"centring", "mean of all samples"}});
  writer.add("nc3_dual_variance", dual_variance(weight, means),
             "variance over c of <w_c, m_c>, over K - 1");
}

void add_classifier_nc4(CollapseWriter& writer, const Collapse& collapse) {
  if (has_distinct_means(collapse)) {
    const auto* formula = "share of samples with argmax W h != argmin_c |h - mu_c|, bias ignored";
    const auto* name = "nc4_ncc_mismatch_without_bias";
    writer.add_mismatch(name, collapse.own, collapse.own.from_products, formula, false);
    writer.add_mismatch(name, collapse.test, collapse.test.from_products, formula, true);
  }
  auto logits = collapse.weight.mv(collapse.centres.mean);
  if (collapse.bias.defined()) logits = logits + collapse.bias;
  writer.add("nc4_centre_logits", logits.norm().item<double>(),
             collapse.bias.defined() ? "|W mu_G + b|" : "|W mu_G|, the classifier has no bias");
}

void add_nc5(CollapseWriter& writer, const Collapse& collapse) {
  const auto means = collapse.centres.means();
  for (const auto& [ood, sums] : collapse.ood) {
    const auto samples = sums.samples();
    if (auto of_all = orthodev_reading(means, ood, sums.sums().sum(0), samples)) {
      writer.add(std::move(*of_all));
    }
    const auto value = mean_absolute_cosine(means, ClassCentres(sums).mean);
    if (!value) continue;
    writer.add(
        "orthodev_class_means", value,
        "mean_c |cos(mu_c, mu_ood)|, mu_ood = mean of the class means of the OOD test samples",
        {{"centring", "none"}, {"ood_samples", samples}});
    writer.last().ood = ood;
  }
}

}  // namespace

std::optional<Reading> orthodev_reading(const torch::Tensor& class_means, const std::string& ood,
                                        const torch::Tensor& sum, int64_t samples) {
  const auto value = mean_absolute_cosine(class_means, sum / static_cast<double>(samples));
  if (!value) return std::nullopt;
  return Reading{
      .name = "orthodev",
      .value = *value,
      .ood = ood,
      .definition = {
          {"formula", "mean_c |cos(mu_c, mu_ood)|, mu_ood = mean of all OOD test samples"},
          {"centring", "none"},
          {"ood_samples", samples}}};
}

Readings classifier_collapse_readings(const Collapse& collapse) {
  CollapseWriter writer(collapse);
  add_nc1(writer, collapse);
  add_nc2(writer, collapse.centres.gram());
  if (collapse.weight.defined()) {
    add_weight(writer, collapse.weight);
    add_duality(writer, collapse);
  }
  add_nc4(writer, collapse);
  if (collapse.weight.defined()) add_classifier_nc4(writer, collapse);
  add_nc5(writer, collapse);
  add_nc1_variants(writer, collapse);
  add_nc2_variants(writer, collapse);
  return writer.taken();
}

}  // namespace kelvin
