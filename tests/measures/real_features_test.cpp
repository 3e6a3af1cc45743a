#include <gtest/gtest.h>
#include <torch/torch.h>

#include <numeric>
#include <set>

#include "kelvin/data/dataset.h"
#include "kelvin/experiment/evaluate/extract.h"
#include "kelvin/model/weights.h"
#include "tests/support/built_model.h"
#include "tests/support/layer_records.h"
#include "tests/support/measured.h"
#include "tests/support/oracle.h"
#include "tests/support/real_data.h"
#include "tests/support/tensors.h"

namespace kelvin::real_features_test {

constexpr int64_t kImages = 64;
constexpr double kTolerance = 1e-6;

// Every measure on what the published ResNet-20 makes of real images, against NumPy.
class RealFeatures : public RealData {
 protected:
  // A layer of each width and stride, and the classifier; of the same images the gradients.
  struct Shown {
    Record record;
    Record gradients;
  };

  const Shown& shown() const {
    static const Shown all = forwarded();
    return all;
  }

  NamedTensors arrays() const {
    NamedTensors arrays = {{"logits", shown().record.logits}, {"labels", shown().record.labels}};
    for (const auto& layer : shown().record.layers) {
      arrays[layer.name + "/w"] = layer.weight;
      arrays[layer.name + "/a"] = layer.input;
      arrays[layer.name + "/out"] = layer.output;
      arrays[layer.name + "/geometry"] = torch::tensor({layer.stride, layer.padding});
    }
    for (const auto& layer : shown().gradients.layers) {
      arrays[layer.name + "/g"] = layer.gradient;
      arrays[layer.name + "/ga"] = layer.input;
    }
    return arrays;
  }

  // The script may call `layers` (their names), W(name), A(name) and rows(name).
  NamedTensors numpy(const std::string& script) const {
    return oracle(std::string(kLayerMatricesInPython) + R"(
layers = sorted(k[:-2] for k in x if k.endswith("/w"))
def W(name):
    return weight_matrix(x[name + "/w"])
def A(name, of="/a"):
    return input_matrix(x[name + "/w"], x[name + of], *x[name + "/geometry"])
def rows(name):
    return x[name + "/out"].astype(float).reshape(len(x["labels"]), -1)
def values(m):
    return np.linalg.svd(m, compute_uv=False)
)" + script,
                  arrays());
  }

 private:
  Shown forwarded() const {
    const std::set<std::string> kept = {"conv1", "layer2.0.conv1", "layer3.2.conv2"};
    const auto model = built_model("resnet20");
    load_weights(data_folder() / "weights" / "cifar10-resnet20.safetensors", *model);
    const auto dataset = load_dataset("cifar10", {.train_samples = kImages,
                                                  .test_samples = kImages,
                                                  .data_folder = data_folder(),
                                                  .normalisation = Normalisation::imagenet});
    const auto keep = [&](Record record) {
      const auto last = record.layers.back().name;
      std::erase_if(record.layers, [&](const auto& layer) {
        return !kept.contains(layer.name) && layer.name != last;
      });
      return record;
    };
    Shown all;
    extract(*model, dataset, dataset, {.with_layers = true},
            [&](const Record& record) { all.record = keep(record); });
    std::vector<int64_t> indices(kImages / 2);
    std::iota(indices.begin(), indices.end(), int64_t{0});
    all.gradients = keep(extract_gradients(
        *model, dataset,
        {.indices = indices, .loss = [](const torch::Tensor& logits, const torch::Tensor& labels) {
           return torch::cross_entropy_loss(logits, labels);
         }}));
    return all;
  }
};

void expect_relative(double value, const torch::Tensor& expected, const std::string& what) {
  const auto wanted = expected.item<double>();
  EXPECT_NEAR(value, wanted, kTolerance * std::abs(wanted)) << what;
}

// Relative to the largest: squaring leaves half of the digits of small ones.
void expect_spectrum(const torch::Tensor& values, const torch::Tensor& expected) {
  const auto count = std::min(values.size(0), expected.size(0));
  expect_close(values.narrow(0, 0, count), expected.narrow(0, 0, count),
               kTolerance * expected[0].item<double>());
}

TEST_F(RealFeatures, HaveTheSpectraAndRanksOfNumPy) {
  const auto expected = numpy(R"(
for name in layers:
    every = values(rows(name) - rows(name).mean(0))
    s = every[:len(x["labels"]) - 1]
    p = s / s.sum()
    e = s ** 2
    q = every / every.sum() + 1e-7
    out[name] = s
    out[name + "/ranks"] = np.array([np.sum(e > 1e-3 * e[0]), np.sum(s > 1e-3 * s[0])])
    out[name + "/smooth"] = np.array([np.exp(-np.sum(p * np.log(p))), np.exp(-np.sum(q * np.log(q))),
                                      e.sum() / e[0], e.sum() ** 2 / np.sum(e ** 2)])
)");
  const auto measure =
      make_measure("layer_spectrum", {{"protocol", "exact"}}, {.test_samples = kImages});
  show(*measure, {shown().record});
  const auto readings = measure->compute();
  const auto curves = measure->curves();
  for (const auto& layer : shown().record.layers) {
    const auto& name = layer.name;
    expect_spectrum(curves.at("exact_spectrum/" + name), expected.at(name));
    const auto& ranks = expected.at(name + "/ranks");
    for (const auto& reading : readings_of(readings, "covariance_rank", {{"gamma", 1e-3}})) {
      if (reading.layer != name) continue;
      EXPECT_EQ(reading.value, ranks[0].item<double>()) << name;
    }
    EXPECT_EQ(layer_reading(readings, "numerical_rank", name).value, ranks[1].item<double>());
    const auto& smooth = expected.at(name + "/smooth");
    int64_t i = 0;
    for (const char* rank : {"effective_rank", "rankme", "stable_rank", "participation_ratio"}) {
      expect_relative(layer_reading(readings, rank, name).value, smooth[i++], name + " " + rank);
    }
  }
}

TEST_F(RealFeatures, HaveTheAlignmentOfNumPy) {
  const auto expected = numpy(R"(
for name in layers:
    v = np.linalg.svd(W(name), full_matrices=False)[2][:15].T
    u = np.linalg.svd(A(name), full_matrices=False)[0][:, :15]
    out[name] = np.abs(v.T @ u)
)");
  const auto measure =
      make_measure("alignment", {{"samples", kImages}, {"positions", kImages * 1024}});
  measure->see_sample(shown().record);
  const auto readings = measure->compute();
  const auto curves = measure->curves();
  for (const auto& layer : shown().record.layers) {
    expect_close(curves.at("alignment/" + layer.name), expected.at(layer.name), kTolerance);
    expect_relative(layer_reading(readings, "alignment", layer.name).value,
                    expected.at(layer.name).max(), layer.name);
  }
}

TEST_F(RealFeatures, HaveTheGradientRanksOfNumPy) {
  const auto expected = numpy(R"(
for name in layers:
    g, s = values(weight_matrix(x[name + "/g"])), values(A(name, "/ga"))
    out[name + "/gradient"], out[name + "/input"] = g, s
    out[name + "/ranks"] = np.array([np.sum(g > 1e-3 * g[0]), np.sum(s > 1e-3 * s[0])])
)");
  const auto measure = make_measure("gradient_rank");
  measure->see_gradients(shown().gradients);
  const auto readings = measure->compute();
  const auto curves = measure->curves();
  for (const auto& layer : shown().gradients.layers) {
    const auto& name = layer.name;
    expect_spectrum(curves.at("gradient_spectrum/" + name), expected.at(name + "/gradient"));
    expect_spectrum(curves.at("activation_spectrum/" + name), expected.at(name + "/input"));
    const auto& ranks = expected.at(name + "/ranks");
    EXPECT_EQ(layer_reading(readings, "gradient_rank", name).value, ranks[0].item<double>());
    EXPECT_EQ(layer_reading(readings, "activation_rank", name).value, ranks[1].item<double>());
  }
}

TEST_F(RealFeatures, HaveTheNormGrowthOfNumPy) {
  const auto expected = numpy(R"(
product = 1
for name in layers:
    sw, sa = values(W(name)), values(A(name))
    n = min(len(sw), len(sa))
    matched = np.sqrt(np.sum(sw[:n] ** 2 * sa[:n] ** 2))
    out[name] = np.array([matched, np.linalg.norm(W(name) @ A(name)) / matched])
    out[name + "/spectrum"] = sw
    out[name + "/weight"] = np.array([sw[0], np.linalg.norm(W(name)), np.sum(sw ** 2) / sw[0] ** 2,
                                      np.sum(sw > 1e-3 * sw[0])])
    product *= sw[0]
images = x["conv1/a"].astype(float).reshape(len(x["labels"]), -1)
gain = np.linalg.norm(x["logits"].astype(float), 2) / np.linalg.norm(images, 2)
out["gain"] = np.array([gain, product])
)");
  const auto measure =
      make_measure("norm_growth", {{"samples", kImages}, {"positions", kImages * 1024}});
  measure->see_sample(shown().record);
  const auto readings = measure->compute();
  for (const auto& layer : shown().record.layers) {
    const auto& parts = expected.at(layer.name);
    const auto& name = layer.name;
    expect_relative(layer_reading(readings, "norm_of_singular_values", name).value, parts[0], name);
    expect_relative(layer_reading(readings, "norm_alignment", name).value, parts[1], name);
  }
  const auto& gain = expected.at("gain");
  expect_relative(reading_of(readings, "network_gain").value, gain[0], "gain");
  expect_relative(reading_of(readings, "top_singular_product").value, gain[1], "product");
  expect_relative(reading_of(readings, "top_singular_share").value, gain[0] / gain[1], "share");
  const auto curves = measure->curves();
  for (const auto& layer : shown().record.layers) {
    const auto& name = layer.name;
    expect_spectrum(curves.at("weight_spectrum/" + name), expected.at(name + "/spectrum"));
    int64_t i = 0;
    for (const char* each :
         {"layer_top_singular_value", "weight_norm", "weight_stable_rank", "weight_rank"}) {
      expect_relative(layer_reading(readings, each, name).value, expected.at(name + "/weight")[i++],
                      name + " " + each);
    }
  }
}

TEST_F(RealFeatures, HaveTheClassStatisticsAndSimilaritiesOfNumPy) {
  const auto expected = numpy(R"(
l = x["labels"]
for name in layers:
    r = rows(name)
    mean = {c: r[l == c].mean(0) for c in np.unique(l)}
    b = sum(np.sum(l == c) * np.sum((mean[c] - r.mean(0)) ** 2) for c in mean) / len(r)
    w = sum(np.sum((r[l == c] - mean[c]) ** 2) for c in mean) / len(r)
    e = [values(r[l == c] - mean[c]) ** 2 for c in mean if np.sum(l == c) > 1]
    out[name] = np.array([b, w, w / b, np.mean([np.sum(v > 1e-3 * v[0]) for v in e])])
centred = {name: rows(name) - rows(name).mean(0) for name in layers}
gram = {name: m @ m.T for name, m in centred.items()}
n = np.linalg.norm
for a in layers:
    for b in layers:
        out["cka/" + a + "/" + b] = np.sum(gram[a] * gram[b]) / (n(gram[a]) * n(gram[b]))
)");
  const auto& record = shown().record;
  const auto readings =
      measured("class_statistics", {record}, {{"sketch", 20000}, {"sample_sketch", 20000}});
  for (const auto& layer : record.layers) {
    int64_t i = 0;
    for (const char* name :
         {"between_class_variance", "within_class_variance", "class_variance_ratio"}) {
      expect_relative(layer_reading(readings, name, layer.name).value, expected.at(layer.name)[i++],
                      layer.name + " " + name);
    }
    for (const auto& reading : readings_of(readings, "class_rank")) {
      if (reading.layer != layer.name || reading.index) continue;
      expect_relative(reading.value, expected.at(layer.name)[i], layer.name + " class_rank");
    }
  }
  const auto similarity = make_measure("layer_similarity", {{"sketch", 20000}});
  show(*similarity, {record});
  const auto cka = similarity->curves().at("cka");
  for (size_t i = 0; i < record.layers.size(); ++i) {
    for (size_t j = 0; j < record.layers.size(); ++j) {
      expect_relative(cka[static_cast<int64_t>(i)][static_cast<int64_t>(j)].item<double>(),
                      expected.at("cka/" + record.layers[i].name + "/" + record.layers[j].name),
                      "cka");
    }
  }
}

TEST_F(RealFeatures, HaveTheSolutionRankAndNormOfNumPy) {
  const auto expected = numpy(R"(
m = x["logits"].astype(float)
free = values(m - m.mean(1, keepdims=True))
soft = np.exp(m / 2 - (m / 2).max(1, keepdims=True))
soft = values(soft / soft.sum(1, keepdims=True))
out["ranks"] = np.array([np.sum(free > 1e-3 * free[0]), np.sum(soft > 1e-3 * soft[0])])
out["norm"] = np.linalg.norm(m)
)");
  const auto& record = shown().record;
  const MeasureContext at_two{.temperature = 2};
  const auto first_of = [&](const char* measure, const char* name) {
    return readings_of(measured(measure, {record}, {}, at_two), name).front().value;
  };
  EXPECT_EQ(first_of("solution_rank", "solution_rank"), expected.at("ranks")[0].item<double>());
  EXPECT_EQ(first_of("post_softmax_rank", "post_softmax_rank"),
            expected.at("ranks")[1].item<double>());
  expect_relative(first_of("logits_norm", "logits_norm"), expected.at("norm"), "norm");
}

}  // namespace kelvin::real_features_test
