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

namespace kelvin::real_logit_detectors_test {

constexpr double kTemperature = 2.5;

struct Shown {
  Record train;
  Record scored;          // test samples, then OOD ones
  NamedTensors expected;  // of each detector at T = 1, and at kTemperature with a 'T' behind
};

Record joined(const Record& first, const Record& second) {
  auto all = first;
  all.logits = torch::cat({first.logits, second.logits});
  all.labels = torch::cat({first.labels, second.labels});
  all.features = torch::cat({first.features, second.features});
  return all;
}

// From the formulas as published, in 80 bits: of these images no probability needs more.
NamedTensors numpy_scores(const Record& train, const Record& scored) {
  return oracle(R"(
W, b = x["weight"].astype(float), x["bias"].astype(float)
h = x["features"].astype(float)
m, m_train = (x[k].astype(np.longdouble) for k in ("logits", "train_logits"))

def logsumexp(z):
    top = z.max(axis=1, keepdims=True)
    return top[:, 0] + np.log(np.exp(z - top).sum(axis=1))
def softmax(z):
    return np.exp(z - logsumexp(z)[:, None])
def largest(values, share):
    removed = int(np.round(share * values.shape[1]))
    kept = values > np.sort(values, axis=1)[:, removed - 1:removed]
    assert np.all(kept.sum(axis=1) == values.shape[1] - removed)
    return kept

def scores_at(T):
    def energy(z):
        return T * logsumexp(z / T)
    def of_features(f):
        return energy(f @ W.T + b)
    p, p_train = softmax(m / T), softmax(m_train / T)
    predicted = p_train.argmax(axis=1)
    means = [p_train[predicted == k].mean(axis=0) for k in range(10)]
    kept = largest(h, .65)
    pruned = h * kept
    total = h.sum(axis=1, keepdims=True)
    top = (h * largest(h, .85)).sum(axis=1, keepdims=True)
    return {
        "msp": np.log(p.max(axis=1)),
        "max_logit": m.max(axis=1),
        "energy": energy(m),
        "entropy": np.sum(p * np.log(p), axis=1),
        "gen": -np.sum(p ** .1 * (1 - p) ** .1, axis=1),
        "odin": np.log(softmax(m / (1000 * T)).max(axis=1)),
        "kl_matching": -np.min([np.sum(p * np.log(p / d), axis=1) for d in means], axis=0),
        "react": of_features(np.minimum(h, np.quantile(x["train_features"].astype(float), .9))),
        "ash_p": of_features(pruned),
        "ash_b": of_features(kept * total / kept.sum(axis=1, keepdims=True)),
        "ash_s": of_features(pruned * np.exp(total / pruned.sum(axis=1, keepdims=True))),
        "scale": of_features(h * np.exp(total / top)),
    }

for T, suffix in ((1, ""), (float(x["temperature"]), "T")):
    for name, scores in scores_at(T).items():
        out[name + suffix] = scores.astype(float)
)",
                {{"logits", scored.logits},
                 {"features", scored.features},
                 {"weight", scored.weight},
                 {"bias", scored.bias},
                 {"train_logits", train.logits},
                 {"train_features", train.features},
                 {"temperature", torch::tensor(kTemperature, torch::kFloat64)}});
}

// Every detector of logits on what the published ResNet-20 makes of real images, against NumPy.
class RealLogitDetectors : public RealData, public testing::WithParamInterface<std::string> {
 protected:
  const Shown& shown() const {
    static const Shown all = forwarded();
    return all;
  }

 private:
  Shown forwarded() const {
    const auto model = built_model("resnet20");
    load_weights(data_folder() / "weights" / "cifar10-resnet20.safetensors", *model);
    const auto load = [&](const char* name) {
      return load_dataset(name, {.train_samples = 200,
                                 .test_samples = 100,
                                 .data_folder = data_folder(),
                                 .normalisation = Normalisation::imagenet});
    };
    const auto dataset = load("cifar10");
    Shown all;
    extract(*model, dataset, dataset, {.split = Split::train},
            [&](const Record& record) { all.train = record; });
    extract(*model, dataset, dataset, {}, [&](const Record& record) { all.scored = record; });
    extract(*model, load("svhn"), dataset, {.is_ood = true},
            [&](const Record& record) { all.scored = joined(all.scored, record); });
    all.expected = numpy_scores(all.train, all.scored);
    return all;
  }
};

TEST_P(RealLogitDetectors, AgreeWithNumPyAndTellOodImages) {
  ASSERT_EQ(shown().train.logits.size(0), 200);
  ASSERT_EQ(shown().scored.logits.size(0), 200);
  for (const double temperature : {1., kTemperature}) {
    const auto detector = make_detector(GetParam(), {}, temperature);
    const auto scores = fitted_scores(*detector, shown().train, shown().scored);
    const auto& expected = shown().expected.at(GetParam() + (temperature == 1 ? "" : "T"));
    // 80 bits leave 1e-19 of a probability of 1.
    EXPECT_TRUE(((scores - expected).abs() <= 1e-6 * expected.abs() + 1e-17).all().item<bool>())
        << "at " << temperature << "\n"
        << torch::stack({scores, expected}, 1);
    EXPECT_LT(scores.slice(0, 100).mean().item<double>(),
              scores.slice(0, 0, 100).mean().item<double>())
        << "at " << temperature;
  }
}

INSTANTIATE_TEST_SUITE_P(Detectors, RealLogitDetectors,
                         testing::Values("msp", "max_logit", "energy", "entropy", "gen", "odin",
                                         "kl_matching", "react", "ash_p", "ash_b", "ash_s",
                                         "scale"),
                         [](const auto& info) { return info.param; });

}  // namespace kelvin::real_logit_detectors_test
