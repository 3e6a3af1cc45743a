#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>

#include "kelvin/data/dataset.h"
#include "kelvin/experiment/evaluate/extract.h"
#include "kelvin/model/weights.h"
#include "tests/support/built_model.h"
#include "tests/support/detectors.h"
#include "tests/support/oracle.h"
#include "tests/support/real_data.h"

namespace kelvin::real_feature_detectors_test {

struct Shown {
  Record train;
  Record test;
  Record ood;
  Record scored;          // the test samples, then the OOD ones
  NamedTensors expected;  // of those that are scored, by a detector and what it is asked for
};

Record joined(const Record& first, const Record& second) {
  auto all = first;
  all.logits = torch::cat({first.logits, second.logits});
  all.labels = torch::cat({first.labels, second.labels});
  all.features = torch::cat({first.features, second.features});
  return all;
}

struct Case {
  std::string name;
  std::string detector;
  Values values = {};
  double temperature = 1;
  bool tells_ood = true;
};

void PrintTo(const Case& asked, std::ostream* out) { *out << asked.name; }

// From the formulas, in the words of NumPy and scikit-learn.
NamedTensors numpy_scores(const Record& train, const Record& scored) {
  return oracle(R"(
from scipy.special import logsumexp
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler, normalize

X, h, W, b = (x[k].astype(float) for k in ("train_features", "features", "weight", "bias"))
m, y = x["logits"].astype(float), x["train_labels"]
length = lambda v: np.linalg.norm(v, axis=-1)
mean = X.mean(0)
means = np.stack([X[y == c].mean(0) for c in range(10)])

scaler = StandardScaler().fit(X)
pca = PCA().fit(scaler.transform(X))
scaled = pca.transform(scaler.transform(h))
out["neco"] = length(scaled[:, :10]) / length(scaler.transform(h))
out["neco_raw"] = length(scaled[:, :20]) / length(h)
plain = PCA().fit(X)
d = np.searchsorted(np.cumsum(plain.explained_variance_ratio_), .9) + 1
out["neco_vit"] = length(plain.transform(h)[:, :d]) / length(h) * m.max(1)

within = EmpiricalCovariance(assume_centered=True).fit(X - means[y]).precision_
nearest = np.min([np.einsum("ni,ij,nj->n", h - c, within, h - c) for c in means], axis=0)
out["mahalanobis"] = -nearest
out["relative_mahalanobis"] = EmpiricalCovariance().fit(X).mahalanobis(h) - nearest

u = -np.linalg.pinv(W) @ b
values, vectors = np.linalg.eigh(EmpiricalCovariance(assume_centered=True).fit(X - u).covariance_)
rest = vectors[:, np.argsort(-values)[32:]]
alpha = x["train_logits"].astype(float).max(1).sum() / length((X - u) @ rest).sum()
out["residual"] = -length((h - u) @ rest)
out["vim"] = logsumexp(m, axis=1) - alpha * length((h - u) @ rest)
out["vim_at_3"] = 3 * logsumexp(m / 3, axis=1) - alpha * length((h - u) @ rest)

for k in (1, 50):
    search = NearestNeighbors(n_neighbors=k, algorithm="kd_tree").fit(normalize(X))
    out[f"knn_{k}"] = -search.kneighbors(normalize(h))[0][:, -1]

p = m.argmax(1)
out["fdbd"] = np.array([np.mean([(m[i, p[i]] - m[i, c]) / length(W[p[i]] - W[c])
                                 for c in range(10) if c != p[i]]) for i in range(len(h))])
out["fdbd"] /= length(h - mean)
out["nci"] = np.sum(W[p] * (h - mean), axis=1) / length(h - mean) + 1e-4 * np.abs(h).sum(1)
out["cosine"] = cosine_similarity(h, means).max(1)
out["cosine_centred"] = cosine_similarity(h - mean, means - mean).max(1)
)",
                {{"features", scored.features},
                 {"logits", scored.logits},
                 {"weight", scored.weight},
                 {"bias", scored.bias},
                 {"train_features", train.features},
                 {"train_labels", train.labels},
                 {"train_logits", train.logits}});
}

// What the published ResNet-20 makes of real images.
class RealFeatures : public RealData {
 protected:
  Shown forwarded(int64_t train_samples) const {
    const auto model = built_model("resnet20");
    load_weights(data_folder() / "weights" / "cifar10-resnet20.safetensors", *model);
    const auto load = [&](const char* name) {
      return load_dataset(name, {.train_samples = train_samples,
                                 .test_samples = 100,
                                 .data_folder = data_folder(),
                                 .normalisation = Normalisation::imagenet});
    };
    const auto dataset = load("cifar10");
    Shown all;
    extract(*model, dataset, dataset, {.split = Split::train, .batch_size = 400},
            [&](const Record& record) {
              all.train = all.train.logits.defined() ? joined(all.train, record) : record;
            });
    extract(*model, dataset, dataset, {}, [&](const Record& record) { all.test = record; });
    extract(*model, load("svhn"), dataset, {.is_ood = true},
            [&](const Record& record) { all.ood = record; });
    all.scored = joined(all.test, all.ood);
    return all;
  }
};

// Every detector of features, against NumPy.
class RealFeatureDetectors : public RealFeatures, public testing::WithParamInterface<Case> {
 protected:
  const Shown& shown() const {
    static const Shown all = [this] {
      auto shown = forwarded(400);
      shown.expected = numpy_scores(shown.train, shown.scored);
      return shown;
    }();
    return all;
  }
};

TEST_P(RealFeatureDetectors, AgreeWithNumPyAndTellOodImages) {
  ASSERT_EQ(shown().train.features.sizes(), torch::IntArrayRef({400, 64}));
  ASSERT_EQ(shown().test.features.sizes(), torch::IntArrayRef({100, 64}));
  ASSERT_EQ(shown().scored.features.sizes(), torch::IntArrayRef({200, 64}));
  const auto& asked = GetParam();
  const auto detector = make_detector(asked.detector, asked.values, asked.temperature);
  const auto scores = fitted_scores(*detector, shown().train, shown().scored);
  expect_ratio(scores, shown().expected.at(asked.name), 1e-6);
  if (!asked.tells_ood) return;
  EXPECT_LT(scores.slice(0, 100).mean().item<double>(),
            scores.slice(0, 0, 100).mean().item<double>());
}

// More than 4096 rows are searched in another way than a few.
using RealNeighboursSlow = RealFeatures;

TEST_F(RealNeighboursSlow, AreThoseThatScikitLearnFindsInManyRows) {
  const auto shown = forwarded(4200);
  ASSERT_EQ(shown.train.features.sizes(), torch::IntArrayRef({4200, 64}));
  const auto expected =
      oracle(R"(
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

X, h = (normalize(x[k].astype(float)) for k in ("train_features", "features"))
distances = NearestNeighbors(n_neighbors=50, algorithm="kd_tree").fit(X).kneighbors(h)[0]
for k in (1, 50):
    out[f"knn_{k}"] = -distances[:, k - 1]
)",
             {{"features", shown.scored.features}, {"train_features", shown.train.features}});
  for (const int64_t neighbours : {1, 50}) {
    const auto detector = make_detector("knn", {{"neighbours", neighbours}});
    expect_ratio(fitted_scores(*detector, shown.train, shown.scored),
                 expected.at("knn_" + std::to_string(neighbours)), 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Detectors, RealFeatureDetectors,
    testing::Values(
        Case{"neco", "neco"},
        // Published for transformers; of this network OOD images have the shorter features.
        Case{.name = "neco_raw",
             .detector = "neco",
             .values = {{"raw_denominator", true}, {"dimensions", 20}},
             .tells_ood = false},
        Case{"neco_vit",
             "neco",
             {{"scaler", false}, {"max_logit", true}, {"explained_variance", 0.9}}},
        Case{"mahalanobis", "mahalanobis"}, Case{"relative_mahalanobis", "relative_mahalanobis"},
        Case{"residual", "residual"}, Case{"vim", "vim"}, Case{"vim_at_3", "vim", {}, 3},
        Case{"knn_1", "knn", {{"neighbours", 1}}}, Case{"knn_50", "knn"}, Case{"fdbd", "fdbd"},
        Case{"nci", "nci"}, Case{"cosine", "cosine"},
        Case{"cosine_centred", "cosine", {{"centred", true}}}),
    [](const auto& info) { return info.param.name; });

}  // namespace kelvin::real_feature_detectors_test
