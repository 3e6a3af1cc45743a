#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kelvin/data/dataset.h"
#include "kelvin/experiment/evaluate/extract.h"
#include "kelvin/model/weights.h"
#include "tests/support/built_model.h"
#include "tests/support/collapse.h"
#include "tests/support/oracle.h"
#include "tests/support/real_data.h"

namespace kelvin::published_collapse_test {

// A wide layer, of 64 maps of 8 x 8, and the logits.
const std::set<std::string> kLayers = {"layer3.0.conv1", "layer3.2.conv2", "fc"};

class PublishedCollapse : public RealData {
 protected:
  // What the published ResNet-20 makes of 500 images it was trained on, of 100 it was not, and of
  // 104 house numbers: not as many of each class, so that the mean of their classes is another.
  struct Shown {
    std::vector<Record> train;
    std::vector<Record> test;
    std::vector<Record> ood;
  };

  Shown forwarded() const {
    const auto model = built_model("resnet20");
    load_weights(data_folder() / "weights" / "cifar10-resnet20.safetensors", *model);
    const auto own = some_of("cifar10", 100);
    const auto ood = some_of("svhn", 104);
    const auto records = [&](const Dataset& shown, const ExtractOptions& options) {
      std::vector<Record> kept;
      extract(*model, shown, own, options, [&](const Record& record) {
        kept.push_back(record);
        auto& layers = kept.back().layers;
        std::erase_if(layers, [](const auto& each) { return !kLayers.contains(each.name); });
        for (auto& layer : layers) layer.input = layer.pre_activation = torch::Tensor();
      });
      return kept;
    };
    return {
        .train = records(own, {.split = Split::train, .with_layers = true, .batch_size = 50}),
        .test = records(own, {.split = Split::test, .with_layers = true, .batch_size = 50}),
        .ood = records(
            ood, {.split = Split::test, .is_ood = true, .with_layers = true, .batch_size = 50})};
  }

 private:
  Dataset some_of(const std::string& name, int64_t test_samples) const {
    return load_dataset(name, {.train_samples = 500,
                               .test_samples = test_samples,
                               .data_folder = data_folder(),
                               .normalisation = Normalisation::imagenet});
  }
};

torch::Tensor joined(const std::vector<Record>& records, const auto& part) {
  std::vector<torch::Tensor> parts;
  for (const auto& record : records) parts.push_back(part(record));
  return torch::cat(parts);
}

// Under `prefix`, what the oracle needs of the records of a split.
void add_inputs(NamedTensors& inputs, const std::string& prefix,
                const std::vector<Record>& records) {
  const auto add = [&](const std::string& name, const auto& part) {
    inputs[prefix + name] = joined(records, part);
  };
  add("features", [](const auto& record) { return record.features; });
  add("labels", [](const auto& record) { return record.labels; });
  add("logits", [](const auto& record) { return record.logits; });
  for (size_t i = 0; i < records[0].layers.size(); ++i) {
    add("layer/" + records[0].layers[i].name,
        [&](const auto& record) { return record.layers[i].output; });
  }
}

constexpr const char* kScript = R"(
y, predicted = x["labels"], x["logits"].argmax(1)
def put_as(layer):
    def put(name, value):
        out[layer + "/" + name] = value
    return put
def test_mismatch(c, h, predicted):
    h = h.astype(float).reshape(len(h), -1)
    nearest = [c["classes"][np.argmin([((v - m) ** 2).sum() for m in c["mu"]])] for v in h]
    return np.mean(np.array(nearest) != predicted)
h, test_predicted = x["test/features"].astype(float), x["test/logits"].argmax(1)
c = classifier_collapse(put_as(""), x["features"], y, predicted, x["weight"], x["bias"])
out["test//nc4_ncc_mismatch"] = test_mismatch(c, h, test_predicted)
out["test//nc4_ncc_mismatch_without_bias"] = test_mismatch(c, h, (h @ x["weight"].T).argmax(1))
for name in list(x):
    if name.startswith("layer/"):
        of_layer = collapse(put_as(name[6:]), x[name], y, predicted)
        mismatch = test_mismatch(of_layer, x["test/" + name], test_predicted)
        out["test/" + name[6:] + "/nc4_ncc_mismatch"] = mismatch
f, classes = x["OOD/features"].astype(float), x["OOD/labels"]
def orthodev(m):
    return np.mean([abs(v @ m) / np.linalg.norm(v) / np.linalg.norm(m) for v in c["mu"]])
out["/orthodev"] = orthodev(f.mean(0))
out["/orthodev_class_means"] = orthodev(
    np.mean([f[classes == k].mean(0) for k in np.unique(classes)], 0))
)";

TEST_F(PublishedCollapse, AgreesWithThePlainDefinitionsOnRealFeatures) {
  const auto shown = forwarded();
  const auto& first = shown.train[0];
  ASSERT_EQ(first.layers.size(), 3U);
  NamedTensors inputs = {{"weight", first.weight}, {"bias", first.bias}};
  add_inputs(inputs, "", shown.train);
  add_inputs(inputs, "test/", shown.test);
  add_inputs(inputs, "OOD/", shown.ood);
  ASSERT_EQ(inputs.at("test/features").size(0), 100);
  ASSERT_EQ(inputs.at("OOD/features").size(0), 104);
  const auto expected = oracle(std::string(kCollapseInPython) + kScript, inputs);
  auto rest = shown.test;
  rest.insert(rest.end(), shown.ood.begin(), shown.ood.end());
  const auto readings = collapse_of(shown.train, rest);
  std::set<std::string> compared;
  for (const auto& reading : readings) {
    const auto name = (reading.split == "test" ? "test/" : "") + reading.layer + "/" + reading.name;
    ASSERT_TRUE(expected.contains(name)) << name;
    compared.insert(name);
    const auto wanted = expected.at(name).item<double>();
    EXPECT_NEAR(reading.value, wanted, 1e-6 * std::abs(wanted)) << name;
  }
  EXPECT_EQ(compared.size(), expected.size());
  EXPECT_EQ(readings.size(), expected.size());
  EXPECT_EQ(layer_reading(readings, "nc1_trace_pinv", "layer3.2.conv2").definition["features"],
            4096);
  const auto orthodev = layer_reading(readings, "orthodev", "");
  EXPECT_EQ(orthodev.ood, "svhn");
  EXPECT_GT(std::abs(orthodev.value - layer_reading(readings, "orthodev_class_means", "").value),
            1e-4 * orthodev.value);
  // The features are those of a network that has begun to collapse, not noise.
  EXPECT_LT(layer_reading(readings, "nc1_trace_ratio", "").value,
            layer_reading(readings, "nc1_trace_ratio", "layer3.0.conv1").value);
  for (const auto& [split, samples] : {std::pair("train", 500), std::pair("test", 100)}) {
    const auto mismatches = readings_of(readings, "nc4_ncc_mismatch", {{"split", split}});
    ASSERT_EQ(mismatches.size(), 4U);
    EXPECT_LT(mismatches[0].value, 0.1);
    EXPECT_EQ(mismatches[1].layer, "layer3.0.conv1");
    EXPECT_GT(mismatches[1].value, 0.1);
    for (const auto& reading : mismatches) EXPECT_EQ(reading.definition["samples"], samples);
  }
}

}  // namespace kelvin::published_collapse_test
