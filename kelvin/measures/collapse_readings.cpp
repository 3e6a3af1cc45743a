#include "kelvin/measures/collapse_readings.h"

#include <torch/types.h>

#include <algorithm>
#include <utility>

#include "kelvin/numerics/neural_collapse.h"

namespace kelvin {
namespace {

// Of the symbols in all formulas.
constexpr const char* kSymbols =
    "h: features, mu_c: mean of class c, K: classes with samples, N: samples, p: features, "
    "mu_G = sum_c mu_c / K, m_c = mu_c - mu_G, M = [m_c], S_B = sum_c m_c m_c^T / K, "
    "S_W = sum (h - mu_c)(h - mu_c)^T / N, ETF = (I - 11^T/K) / sqrt(K - 1), norms Frobenius";

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
std::optional<double> trace_pinv(const Collapse& collapse, const torch::Tensor& means) {
  const auto count = inverted_directions(collapse);
  const auto along = means.narrow(1, 0, count);
  const auto between = along.t().matmul(along) / static_cast<double>(means.size(0));
  const auto within = collapse.spread->within().narrow(0, 0, count).narrow(1, 0, count);
  return trace_of_ratio(within, between, collapse.cutoff);
}

// Tr(S_W S_B^+) with K - 1 inverted directions, whatever they hold; none if one of them holds but
// the rounding of float64.
std::optional<double> trace_svd(const Collapse& collapse) {
  const auto count = collapse.centres.size() - 1;
  if (possible_directions(collapse) < count) return std::nullopt;
  const auto means = collapse.spread->coordinates().narrow(1, 0, count);
  const auto within = collapse.spread->within().narrow(0, 0, count).narrow(1, 0, count);
  return trace_of_whole_ratio(within, means.square().mean(0));
}

// `means` [K, width] are whole: what the cutoff leaves out counts in a trace.
std::optional<double> trace_ratio(const Collapse& collapse, const torch::Tensor& means) {
  const auto between = means.square().sum().item<double>() / static_cast<double>(means.size(0));
  if (between <= 0) return std::nullopt;
  return collapse.spread->total_within() / between;
}

Definition definition_of_pinv(const Collapse& collapse) {
  Definition definition = {{"directions", inverted_directions(collapse)},
                           {"cutoff", collapse.cutoff}};
  // A random projection adds a fraction of the variance across to every direction.
  if (collapse.width < collapse.features) {
    definition["bias_of_projection"] =
        "too large: Tr S_W / projected_to is added to the variance along each direction";
  }
  return definition;
}

}  // namespace

void CentreMismatch::add(const CentreMismatch& other) {
  samples += other.samples;
  from_logits += other.from_logits;
  from_products += other.from_products;
}

CollapseWriter::CollapseWriter(const Collapse& collapse) : collapse_(collapse) {
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

void CollapseWriter::add(const char* name, const std::optional<double>& value, const char* formula,
                         const Definition& more) {
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

void CollapseWriter::add(Reading reading) {
  reading.layer = collapse_.layer;
  reading.split = collapse_.split;
  auto definition = definition_;
  definition.update(reading.definition);
  reading.definition = std::move(definition);
  readings_.push_back(std::move(reading));
}

void CollapseWriter::add_mismatch(const char* name, const CentreMismatch& mismatch, int64_t count,
                                  const char* formula, bool is_test) {
  if (mismatch.samples == 0) return;
  const auto fraction = static_cast<double>(count) / static_cast<double>(mismatch.samples);
  Definition more = {{"samples", mismatch.samples}};
  if (is_test) {
    more["split"] = "test";
    more["means"] = "of the training split";
  }
  add(name, fraction, formula, more);
  if (is_test) readings_.back().split = "test";
}

void add_nc1(CollapseWriter& writer, const Collapse& collapse) {
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

void add_nc1_variants(CollapseWriter& writer, const Collapse& collapse) {
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

void add_nc2(CollapseWriter& writer, const torch::Tensor& gram) {
  writer.add("nc2_equinorm", equinorm(gram), "std_c |m_c| / mean_c |m_c|, std over K - 1");
  writer.add("nc2_equiangular", equiangularity(gram),
             "mean over i != j of |cos(m_i, m_j) + 1 / (K - 1)|");
  writer.add("nc2_etf_error", etf_error(gram), "|M^T M / |M^T M| - ETF|");
}

void add_nc2_variants(CollapseWriter& writer, const Collapse& collapse) {
  const auto gram = collapse.centres.gram();
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

bool has_distinct_means(const Collapse& collapse) {
  return collapse.spread && collapse.spread->directions() > 0;
}

void add_nc4(CollapseWriter& writer, const Collapse& collapse) {
  if (!has_distinct_means(collapse)) return;
  const auto* formula = "share of samples with argmax logits != argmin_c |h - mu_c|";
  writer.add_mismatch("nc4_ncc_mismatch", collapse.own, collapse.own.from_logits, formula, false);
  writer.add_mismatch("nc4_ncc_mismatch", collapse.test, collapse.test.from_logits, formula, true);
}

Readings layer_collapse_readings(const Collapse& collapse) {
  CollapseWriter writer(collapse);
  add_nc1(writer, collapse);
  add_nc2(writer, collapse.centres.gram());
  add_nc4(writer, collapse);
  return writer.taken();
}

}  // namespace kelvin
