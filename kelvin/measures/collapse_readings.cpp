#include "kelvin/measures/collapse_readings.h"

#include <torch/types.h>

#include <algorithm>
#include <utility>

#include "kelvin/numerics/neural_collapse.h"

namespace kelvin {
namespace {

using Number = std::optional<double>;

// Of the symbols in all formulas.
constexpr const char* kSymbols =
    "h: features, mu_c: mean of class c, K: classes with samples, N: samples, p: features, "
    "mu_G = sum_c mu_c / K, m_c = mu_c - mu_G, M = [m_c], S_B = sum_c m_c m_c^T / K, "
    "S_W = sum (h - mu_c)(h - mu_c)^T / N, ETF = (I - 11^T/K) / sqrt(K - 1), norms Frobenius";

Number times(const Number& value, double factor) {
  return value ? Number(*value * factor) : std::nullopt;
}

// Gathers the readings of one matrix of features, leaving out what is not defined.
class Writer {
 public:
  explicit Writer(const Collapse& collapse) : collapse_(collapse) {
    const auto& centres = collapse.centres;
    definition_ = {
        {"symbols", kSymbols},
        {"matrix", collapse.layer.empty() ? "the classifier's input (sample x feature)"
                                          : "features of the layer (sample x feature)"},
        {"centring", "mean of the class means"},
        {"classes", centres.size()},
        {"missing_classes", collapse.classes - centres.size()},
        {"samples", centres.samples()},
        {"features", collapse.features},
        {"passes", collapse.spread ? 2 : 1},
        {"precision", "float32 forward, float64 sums"},
        {"split",
         collapse.split == "train" ? "train" : "test, because no training samples were shown"}};
    if (collapse.width < collapse.features) {
      definition_["projected_to"] = collapse.width;
      definition_["estimated"] = "from projected features";
    }
  }

  void add(const char* name, const Number& value, const char* formula,
           const Definition& more = Definition::object()) {
    if (!value) return;
    Reading reading{.name = name,
                    .value = *value,
                    .layer = collapse_.layer,
                    .split = collapse_.split,
                    .definition = definition_};
    reading.definition["formula"] = formula;
    reading.definition.update(more);
    readings_.push_back(std::move(reading));
  }

  void add(Reading reading) {
    reading.layer = collapse_.layer;
    reading.split = collapse_.split;
    auto definition = definition_;
    definition.update(reading.definition);
    reading.definition = std::move(definition);
    readings_.push_back(std::move(reading));
  }

  // Of other samples than the means are of.
  void add_mismatch(const char* name, const CentreMismatch& mismatch, int64_t count,
                    const char* formula, bool is_test) {
    if (mismatch.samples == 0) return;
    const auto share = static_cast<double>(count) / static_cast<double>(mismatch.samples);
    Definition more = {{"samples", mismatch.samples}};
    if (is_test) {
      more["split"] = "test";
      more["means"] = "of the training split";
    }
    add(name, share, formula, more);
    if (is_test) readings_.back().split = "test";
  }

  Reading& last() { return readings_.back(); }
  Readings taken() { return std::move(readings_); }

 private:
  const Collapse& collapse_;
  Definition definition_;
  Readings readings_;
};

// Centred means of K classes differ in at most K - 1 directions; one more would be rounding.
int64_t possible_directions(const Collapse& collapse) {
  return std::min(collapse.spread->directions(), collapse.centres.size() - 1);
}

// Those that are above the cutoff: they come in the order of their size.
int64_t inverted_directions(const Collapse& collapse) {
  const auto count = possible_directions(collapse);
  if (count == 0) return 0;
  const auto squares = collapse.spread->coordinates().square().sum(0).narrow(0, 0, count);
  return (squares > collapse.cutoff * squares.max()).sum().item<int64_t>();
}

// Tr(S_W S_B^+) where `means` [K, directions] are those of S_B, around any point.
Number trace_pinv(const Collapse& collapse, const torch::Tensor& means) {
  const auto count = inverted_directions(collapse);
  const auto along = means.narrow(1, 0, count);
  const auto between = along.t().matmul(along) / static_cast<double>(means.size(0));
  const auto within = collapse.spread->within().narrow(0, 0, count).narrow(1, 0, count);
  return trace_of_ratio(within, between, collapse.cutoff);
}

// Tr(S_W S_B^+) with K - 1 inverted directions, whatever they hold; none if one of them holds but
// the rounding of float64.
Number trace_svd(const Collapse& collapse) {
  const auto count = collapse.centres.size() - 1;
  if (possible_directions(collapse) < count) return std::nullopt;
  const auto means = collapse.spread->coordinates().narrow(1, 0, count);
  const auto within = collapse.spread->within().narrow(0, 0, count).narrow(1, 0, count);
  return trace_of_whole_ratio(within, means.square().mean(0));
}

// `means` [K, width] are whole: what the cutoff leaves out counts in a trace.
Number trace_ratio(const Collapse& collapse, const torch::Tensor& means) {
  const auto between = means.square().sum().item<double>() / static_cast<double>(means.size(0));
  if (between <= 0) return std::nullopt;
  return collapse.spread->total_within() / between;
}

Definition definition_of_pinv(const Collapse& collapse) {
  Definition definition = {{"directions", inverted_directions(collapse)},
                           {"cutoff", collapse.cutoff}};
  // A random map puts a share of what lies across onto every direction.
  if (collapse.width < collapse.features) {
    definition["bias_of_projection"] =
        "too large: Tr S_W / projected_to is added to the variance along each direction";
  }
  return definition;
}

void add_nc1(Writer& writer, const Collapse& collapse) {
  if (!collapse.spread) return;
  const auto means = collapse.spread->coordinates();
  const auto classes = static_cast<double>(collapse.centres.size());
  writer.add("nc1_trace_pinv", times(trace_pinv(collapse, means), 1 / classes), "Tr(S_W S_B^+) / K",
             definition_of_pinv(collapse));
  writer.add("nc1_trace_ratio", trace_ratio(collapse, collapse.centres.centred), "Tr S_W / Tr S_B");
  writer.add("nc1_cdnv",
             class_distance_variance(collapse.spread->variances(), collapse.centres.gram()),
             "mean over i != j of (v_i + v_j) / (2 |mu_i - mu_j|^2), v_c = mean |h - mu_c|^2");
}

void add_nc1_variants(Writer& writer, const Collapse& collapse) {
  if (!collapse.spread) return;
  const auto means = collapse.spread->coordinates();
  const auto& counts = collapse.centres.counts;
  const auto around_samples = means - counts.matmul(means) / counts.sum();
  const auto classes = static_cast<double>(collapse.centres.size());
  const Definition centring = {{"centring", "mean of all samples"}};
  auto of_pinv = definition_of_pinv(collapse);
  writer.add("nc1_trace_pinv_unscaled", trace_pinv(collapse, means), "Tr(S_W S_B^+)", of_pinv);
  const Definition of_svd = {{"directions", collapse.centres.size() - 1}};
  const auto svd = trace_svd(collapse);
  writer.add("nc1_trace_svd", times(svd, 1 / classes),
             "Tr(S_W B) / K, B: inverse of S_B in its K - 1 largest directions, however small",
             of_svd);
  writer.add("nc1_trace_svd_unscaled", svd,
             "Tr(S_W B), B: inverse of S_B in its K - 1 largest directions, however small", of_svd);
  of_pinv.update(centring);
  writer.add("nc1_trace_pinv_weighted_mean",
             times(trace_pinv(collapse, around_samples), 1 / classes),
             "Tr(S_W S_B^+) / K with mu_G = sum h / N", of_pinv);
  const auto& centres = collapse.centres;
  writer.add("nc1_trace_ratio_weighted_mean",
             trace_ratio(collapse, centres.centred - centres.sample_mean()),
             "Tr S_W / Tr S_B with mu_G = sum h / N", centring);
}

void add_nc2(Writer& writer, const torch::Tensor& gram) {
  writer.add("nc2_equinorm", equinorm(gram), "std_c |m_c| / mean_c |m_c|, std over K - 1");
  writer.add("nc2_equiangular", equiangularity(gram),
             "mean over i != j of |cos(m_i, m_j) + 1 / (K - 1)|");
  writer.add("nc2_etf_error", etf_error(gram), "|M^T M / |M^T M| - ETF|");
}

void add_nc2_variants(Writer& writer, const Collapse& collapse, const torch::Tensor& gram) {
  const auto pairs = static_cast<double>(gram.size(0) * gram.size(0));
  writer.add("nc2_etf_error_per_pair", times(etf_error(gram), 1 / pairs),
             "|M^T M / |M^T M| - ETF| / K^2");
  const auto shifted = collapse.centres.centred - collapse.centres.sample_mean();
  writer.add("nc2_etf_error_weighted_mean", etf_error(shifted.matmul(shifted.t())),
             "|M^T M / |M^T M| - ETF| with mu_G = sum h / N",
             {{"centring", "mean of all samples"}});
  writer.add("nc2_distance_variance", distance_variance(gram),
             "variance over i < j of |m_i / |m_i| - m_j / |m_j||, over their number");
  writer.add("nc2_log_distance_variance", log_distance_variance(gram),
             "variance over i < j of ln |m_i / |m_i| - m_j / |m_j||, over their number");
  writer.add("nc2_riesz_variance", riesz_variance(gram, collapse.features),
             "variance over i < j of sign(s) / |m_i / |m_i| - m_j / |m_j||^s, over their number",
             {{"s", collapse.features - 2}});
}

// Where all means are the same, none is nearest.
bool has_centres(const Collapse& collapse) {
  return collapse.spread && collapse.spread->directions() > 0;
}

void add_nc4(Writer& writer, const Collapse& collapse) {
  if (!has_centres(collapse)) return;
  const auto* formula = "share of samples with argmax logits != argmin_c |h - mu_c|";
  writer.add_mismatch("nc4_ncc_mismatch", collapse.own, collapse.own.from_logits, formula, false);
  writer.add_mismatch("nc4_ncc_mismatch", collapse.test, collapse.test.from_logits, formula, true);
}

// Of the weight alone, all of its rows.
void add_weight(Writer& writer, const torch::Tensor& weight) {
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
void add_duality(Writer& writer, const Collapse& collapse) {
  const auto& means = collapse.centres.centred;
  const auto weight = collapse.weight.index_select(0, collapse.centres.classes);
  const auto difference = direction_difference(weight, means);
  const auto dual = etf_error(weight.matmul(means.t()));
  const auto pairs = static_cast<double>(weight.size(0) * weight.size(0));
  writer.add("nc3_self_duality", difference ? Number(*difference * *difference) : std::nullopt,
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

void add_classifier_nc4(Writer& writer, const Collapse& collapse) {
  if (has_centres(collapse)) {
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

void add_nc5(Writer& writer, const Collapse& collapse) {
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

Readings layer_collapse_readings(const Collapse& collapse) {
  Writer writer(collapse);
  add_nc1(writer, collapse);
  add_nc2(writer, collapse.centres.gram());
  add_nc4(writer, collapse);
  return writer.taken();
}

Readings classifier_collapse_readings(const Collapse& collapse) {
  Writer writer(collapse);
  const auto gram = collapse.centres.gram();
  add_nc1(writer, collapse);
  add_nc2(writer, gram);
  if (collapse.weight.defined()) {
    add_weight(writer, collapse.weight);
    add_duality(writer, collapse);
  }
  add_nc4(writer, collapse);
  if (collapse.weight.defined()) add_classifier_nc4(writer, collapse);
  add_nc5(writer, collapse);
  add_nc1_variants(writer, collapse);
  add_nc2_variants(writer, collapse, gram);
  return writer.taken();
}

}  // namespace kelvin
