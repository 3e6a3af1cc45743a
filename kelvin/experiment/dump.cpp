#include "kelvin/experiment/dump.h"

#include <torch/types.h>

#include <algorithm>
#include <set>

#include "kelvin/core/check.h"
#include "kelvin/core/npz_file.h"
#include "kelvin/core/text.h"
#include "kelvin/math/softmax.h"
#include "kelvin/math/tensor_arrays.h"

namespace kelvin {
namespace {

const std::string kLayer = "layer/";

bool is_wanted(const std::string& name, const DumpOptions& options) {
  static const std::set<std::string> always = {"logits", "features", "weight", "bias",
                                               "temperature"};
  return always.contains(name) || (options.needs_labels && name == "labels") ||
         (options.with_layers && name.starts_with(kLayer));
}

torch::Tensor optional_tensor(const Arrays& arrays, const std::string& name) {
  auto found = arrays.find(name);
  return found == arrays.end() ? torch::Tensor() : tensor_of(found->second);
}

void check_floats(const std::string& where, const std::string& name, const torch::Tensor& tensor,
                  int64_t dims) {
  check(tensor.dim() == dims && tensor.is_floating_point(), where, ": '", name,
        "' must be floating with ", dims, " dimensions, got ", tensor.sizes());
  check(torch::isfinite(tensor).all().item<bool>(), where, ": '", name,
        "' must be finite, has a NaN or an infinity");
}

// In order of their names; the classifier's input if there are none.
std::vector<LayerRecord> layers_of(const Arrays& arrays, const Record& record,
                                   const std::string& where) {
  std::vector<LayerRecord> layers;
  for (const auto& [name, array] : arrays) {
    if (!name.starts_with(kLayer)) continue;
    LayerRecord layer;
    layer.name = name.substr(kLayer.size());
    layer.output = tensor_of(array);
    check(layer.output.dim() >= 2 && layer.output.size(0) == record.logits.size(0) &&
              layer.output.numel() > 0,
          where, ": '", name, "' must be [", record.logits.size(0), ", ...], got ",
          layer.output.sizes());
    check_floats(where, name, layer.output, layer.output.dim());
    layers.push_back(layer);
  }
  std::sort(layers.begin(), layers.end(),
            [](const auto& a, const auto& b) { return comes_before(a.name, b.name); });
  if (layers.empty() && record.features.defined()) {
    LayerRecord features;
    features.name = "features";
    features.output = record.features;
    layers.push_back(features);
  }
  return layers;
}

torch::Tensor labels_of(const Arrays& arrays, const Record& record, const std::string& where) {
  check(arrays.contains("labels"), where, ": has no array 'labels'");
  const auto labels = tensor_of(arrays.at("labels"));
  const auto samples = record.logits.size(0);
  check(!labels.is_floating_point() && labels.dim() == 1 && labels.size(0) == samples, where,
        ": 'labels' must be ", samples, " whole numbers, got ", labels.sizes());
  auto numbers = labels.to(torch::kInt64);
  check(numbers.min().item<int64_t>() >= 0 && numbers.max().item<int64_t>() < record.classes, where,
        ": 'labels' must be in [0, ", record.classes, ")");
  return numbers;
}

void check_classifier(const Record& record, const std::string& where) {
  if (record.weight.defined()) {
    check_floats(where, "weight", record.weight, 2);
    check(record.weight.size(0) == record.classes, where, ": 'weight' must have ", record.classes,
          " rows, got ", record.weight.sizes());
    check(!record.features.defined() || record.weight.size(1) == record.features.size(1), where,
          ": 'weight' must have as many columns as 'features', got ", record.weight.sizes(),
          " and ", record.features.sizes());
  }
  if (record.bias.defined()) {
    check_floats(where, "bias", record.bias, 1);
    check(record.bias.size(0) == record.classes, where, ": 'bias' must have ", record.classes,
          " entries, got ", record.bias.sizes());
  }
}

Record record_of(const Arrays& arrays, const std::string& where, const DumpOptions& options) {
  check(arrays.contains("logits"), where, ": has no array 'logits'");
  Record record;
  record.logits = tensor_of(arrays.at("logits"));
  record.features = optional_tensor(arrays, "features");
  record.weight = optional_tensor(arrays, "weight");
  record.bias = optional_tensor(arrays, "bias");
  check_floats(where, "logits", record.logits, 2);
  const auto samples = record.logits.size(0);
  record.classes = record.logits.size(1);
  check(samples > 0 && record.classes > 1, where,
        ": 'logits' must have at least one sample and two classes, got ", record.logits.sizes());
  if (options.needs_labels) record.labels = labels_of(arrays, record, where);
  if (record.features.defined()) {
    check_floats(where, "features", record.features, 2);
    check(record.features.size(0) == samples, where, ": 'features' must have ", samples,
          " rows, got ", record.features.sizes());
  }
  check_classifier(record, where);
  if (options.with_layers) record.layers = layers_of(arrays, record, where);
  return record;
}

double temperature_of(const Arrays& arrays, const std::string& where) {
  if (!arrays.contains("temperature")) return 1;
  const auto tensor = tensor_of(arrays.at("temperature"));
  check(tensor.numel() == 1, where, ": 'temperature' must be a scalar, got ", tensor.sizes());
  const auto temperature = tensor.to(torch::kFloat64).item<double>();
  check_temperature(where.c_str(), temperature);
  return temperature;
}

}  // namespace

Dump read_dump(const std::filesystem::path& npz, const DumpOptions& options) {
  const auto where = npz.string();
  const auto arrays =
      read_npz(npz, [&](const std::string& name) { return is_wanted(name, options); });
  return {.record = record_of(arrays, where, options),
          .temperature = temperature_of(arrays, where)};
}

std::string classifier_caveat(const Record& record, const std::string& where) {
  if (!record.weight.defined() || !record.features.defined()) return "";
  const auto logits = record.logits.to(torch::kFloat64);
  auto expected = record.features.to(torch::kFloat64).matmul(record.weight.to(torch::kFloat64).t());
  if (record.bias.defined()) expected += record.bias.to(torch::kFloat64);
  // What bfloat16 may round away, and sums of it.
  constexpr double kRounding = 0.03;
  const auto largest = [](const torch::Tensor& values) {
    return values.abs().max().item<double>();
  };
  const auto scale = std::max(largest(logits), largest(expected));
  const auto apart = largest(logits - expected);
  if (apart <= kRounding * scale) return "";
  auto text = c10::str(where, ": 'weight'", record.bias.defined() ? " and 'bias'" : "",
                       " do not give 'logits' from 'features' (up to ", apart,
                       " apart): detectors that use them mean nothing");
  const auto factor = ((logits * expected).sum() / expected.square().sum()).item<double>();
  if (largest(logits - factor * expected) <= kRounding * largest(logits)) {
    text += c10::str("; logits are ", factor,
                     " times what they give: store them before the division by a temperature");
  }
  return text;
}

}  // namespace kelvin
