#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "tests/support/layer_records.h"
#include "tests/support/measured.h"
#include "tests/support/tensors.h"

namespace kelvin {

// Shows a training split as often as it is asked for, the second time in another order, then the
// rest.
inline void show_twice(Measure& measure, const std::vector<Record>& train,
                       const std::vector<Record>& rest = {}) {
  for (const auto& record : train) measure.update(record);
  while (measure.wants_train_again()) {
    for (auto record = train.rbegin(); record != train.rend(); ++record) measure.update(*record);
  }
  for (const auto& record : rest) measure.update(record);
}

inline Readings collapse_of(const std::vector<Record>& train, const std::vector<Record>& rest = {},
                            const MeasureContext& context = {}) {
  const auto measure = make_measure("neural_collapse", {}, context);
  show_twice(*measure, train, rest);
  return measure->compute();
}

// Some samples of a record with features.
inline Record collapse_part(const Record& record, const torch::Tensor& indices) {
  auto part = samples_of(record, indices);
  if (record.features.defined()) part.features = record.features.index_select(0, indices);
  return part;
}

// In Python, the plain definitions of neural collapse: loops, and a pseudo-inverse of the
// covariance of all features, or of the matrix of means where that is too large.
inline const char* const kCollapseInPython = R"(
def collapse(put, h, y, predicted):
    h = h.astype(float).reshape(len(h), -1)
    classes = np.unique(y)
    K, N, p = len(classes), len(h), h.shape[1]
    mu = np.array([h[y == c].mean(0) for c in classes])
    M = mu - mu.mean(0)
    d = h - np.array([mu[np.where(classes == c)[0][0]] for c in y])
    def trace_pinv(M):
        if p <= 200:
            return np.trace(d.T @ d / N @ np.linalg.pinv(M.T @ M / K, rcond=1e-12))
        return K / N * np.linalg.norm(d @ np.linalg.pinv(M, rcond=1e-6)) ** 2
    def trace_ratio(M):
        return (d ** 2).sum() / N / ((M ** 2).sum() / K)
    def etf_error(A):
        etf = (np.eye(K) - np.ones((K, K)) / K) / np.sqrt(K - 1)
        return np.linalg.norm(A / np.linalg.norm(A) - etf)
    pairs = [(i, j) for i in range(K) for j in range(K) if i != j]
    v = np.array([(d[y == c] ** 2).sum(1).mean() for c in classes])
    norms = np.linalg.norm(M, axis=1)
    unit = M / norms[:, None]
    nearest = np.array([classes[np.argmin([((x - m) ** 2).sum() for m in mu])] for x in h])
    put("nc1_trace_pinv", trace_pinv(M) / K)
    put("nc1_trace_ratio", trace_ratio(M))
    put("nc1_cdnv", np.mean([(v[i] + v[j]) / 2 / ((mu[i] - mu[j]) ** 2).sum() for i, j in pairs]))
    put("nc2_equinorm", norms.std(ddof=1) / norms.mean())
    put("nc2_equiangular", np.mean([abs(unit[i] @ unit[j] + 1 / (K - 1)) for i, j in pairs]))
    put("nc2_etf_error", etf_error(M @ M.T))
    put("nc4_ncc_mismatch", np.mean(predicted != nearest))
    return dict(h=h, mu=mu, M=M, K=K, p=p, unit=unit, pairs=pairs, nearest=nearest,
                classes=classes, etf_error=etf_error, trace_pinv=trace_pinv,
                trace_ratio=trace_ratio)
def classifier_collapse(put, h, y, predicted, W, b=None):
    W = W.astype(float)
    c = collapse(put, h, y, predicted)
    h, mu, M, K, p, etf_error = (c[k] for k in ("h", "mu", "M", "K", "p", "etf_error"))
    V = W[c["classes"]]
    M_w = mu - h.mean(0)
    distances = np.array([np.linalg.norm(c["unit"][i] - c["unit"][j]) for i, j in c["pairs"]])
    put("nc1_trace_pinv_unscaled", c["trace_pinv"](M))
    _, s, axes = np.linalg.svd(M, full_matrices=False)
    d = h - mu[np.searchsorted(c["classes"], y)]
    svd = sum(((d @ axes[i]) ** 2).mean() / (s[i] ** 2 / K) for i in range(K - 1))
    put("nc1_trace_svd", svd / K)
    put("nc1_trace_svd_unscaled", svd)
    put("nc2_riesz_variance", (np.sign(p - 2) / distances ** (p - 2.0)).var())
    put("nc1_trace_pinv_weighted_mean", c["trace_pinv"](M_w) / K)
    put("nc1_trace_ratio_weighted_mean", c["trace_ratio"](M_w))
    put("nc2_etf_error_per_pair", etf_error(M @ M.T) / K ** 2)
    put("nc2_etf_error_weighted_mean", etf_error(M_w @ M_w.T))
    put("nc2_distance_variance", distances.var())
    put("nc2_log_distance_variance", np.log(1 / distances).var())
    difference = np.linalg.norm(V / np.linalg.norm(V) - M / np.linalg.norm(M))
    put("nc3_self_duality", difference ** 2)
    put("nc3_self_duality_norm", difference)
    put("nc3_self_duality_per_entry", difference / (K * p))
    put("nc3_dual_etf_error", etf_error(V @ M.T))
    put("nc2_product_etf_error", etf_error(V @ M.T) / K ** 2)
    put("nc3_dual_etf_error_weighted_mean", etf_error(V @ M_w.T))
    put("nc3_dual_variance", np.var((V * M).sum(1), ddof=1))
    put("nc4_ncc_mismatch_without_bias", np.mean((h @ W.T).argmax(1) != c["nearest"]))
    put("nc4_centre_logits", np.linalg.norm(W @ mu.mean(0) + (0 if b is None else b)))
    C = len(W)
    norms = np.linalg.norm(W, axis=1)
    cosines = W @ W.T / np.outer(norms, norms)
    etf = (np.eye(C) - np.ones((C, C)) / C) / np.sqrt(C - 1)
    error = np.linalg.norm(W @ W.T / np.linalg.norm(W @ W.T) - etf)
    put("nc0_weight_sum", np.linalg.norm(W.sum(0)) / p)
    put("nc0_weight_sum_squared", np.linalg.norm(W.sum(0)) ** 2 / C)
    put("nc2_weight_equinorm", norms.std(ddof=1) / norms.mean())
    put("nc2_weight_equiangular",
        np.mean([abs(cosines[i, j] + 1 / (C - 1)) for i in range(C) for j in range(C) if i != j]))
    put("nc2_weight_etf_error", error)
    put("nc2_weight_etf_error_per_pair", error / C ** 2)
    return c
)";

}  // namespace kelvin
