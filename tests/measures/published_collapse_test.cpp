#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "kelvin/data/dataset.h"
#include "kelvin/model/weights.h"
#include "kelvin/representations/extract.h"
#include "tests/support/built_model.h"
#include "tests/support/collapse.h"
#include "tests/support/oracle.h"
#include "tests/support/real_data.h"

namespace kelvin {
namespace {

// A wide layer, of 64 maps of 8 x 8, and the logits.
const std::set<std::string> kLayers = {"layer3.0.conv1", "layer3.2.conv2", "fc"};

class PublishedCollapse : public RealData {
 protected:
  // What the published ResNet-20 makes of 500 images it was trained on.
  std::vector<Record> forwarded() const {
    const auto model = built_model("resnet20");
    load_weights(data_folder() / "weights" / "cifar10-resnet20.safetensors", *model);
    const auto dataset = load_dataset("cifar10", {.train_samples = 500,
                                                  .data_folder = data_folder(),
                                                  .normalisation = Normalisation::imagenet});
    std::vector<Record> records;
    extract(*model, dataset, dataset,
            {.split = Split::train, .with_layers = true, .batch_size = 50},
            [&](const Record& record) {
              records.push_back(record);
              auto& layers = records.back().layers;
              std::erase_if(layers, [](const auto& each) { return !kLayers.contains(each.name); });
              for (auto& layer : layers) layer.input = layer.product = torch::Tensor();
            });
    return records;
  }
};

torch::Tensor joined(const std::vector<Record>& records, const auto& part) {
  std::vector<torch::Tensor> parts;
  for (const auto& record : records) parts.push_back(part(record));
  return torch::cat(parts);
}

TEST_F(PublishedCollapse, AgreesWithThePlainDefinitionsOnRealFeatures) {
  const auto records = forwarded();
  NamedTensors inputs = {
      {"features", joined(records, [](const auto& record) { return record.features; })},
      {"labels", joined(records, [](const auto& record) { return record.labels; })},
      {"logits", joined(records, [](const auto& record) { return record.logits; })},
      {"weight", records[0].weight},
      {"bias", records[0].bias}};
  ASSERT_EQ(records[0].layers.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    inputs["layer/" + records[0].layers[i].name] =
        joined(records, [&](const auto& record) { return record.layers[i].output; });
  }
  const auto expected = oracle(std::string(kCollapseInPython) + R"(
y, predicted = x["labels"], x["logits"].argmax(1)
def put_as(layer):
    def put(name, value):
        out[layer + "/" + name] = value
    return put
classifier_collapse(put_as(""), x["features"], y, predicted, x["weight"], x["bias"])
for name in x:
    if name.startswith("layer/"):
        collapse(put_as(name[6:]), x[name], y, predicted)
)",
                               inputs);
  const auto readings = collapse_of(records);
  EXPECT_EQ(readings.size(), expected.size());
  for (const auto& reading : readings) {
    const auto wanted = expected.at(reading.layer + "/" + reading.name).item<double>();
    EXPECT_NEAR(reading.value, wanted, 1e-6 * std::abs(wanted))
        << reading.name << " " << reading.layer;
  }
  EXPECT_EQ(layer_reading(readings, "nc1_trace_pinv", "layer3.2.conv2").definition["features"],
            4096);
  // The features are those of a network that has begun to collapse, not noise.
  EXPECT_LT(layer_reading(readings, "nc1_trace_ratio", "").value,
            layer_reading(readings, "nc1_trace_ratio", "layer3.0.conv1").value);
  EXPECT_LT(layer_reading(readings, "nc4_ncc_mismatch", "").value, 0.1);
  EXPECT_GT(layer_reading(readings, "nc4_ncc_mismatch", "layer3.0.conv1").value, 0.1);
}

}  // namespace
}  // namespace kelvin
