#include "kelvin/experiment/measure_dump.h"

#include <torch/torch.h>

#include "kelvin/core/check.h"
#include "kelvin/core/npz_file.h"
#include "kelvin/core/settings.h"
#include "kelvin/math/softmax.h"
#include "kelvin/measures/measure.h"

namespace kelvin {
namespace {

torch::Tensor tensor_of(const Array& array) {
  const auto type = array.dtype == "f4"   ? torch::kFloat32
                    : array.dtype == "f8" ? torch::kFloat64
                    : array.dtype == "i8" ? torch::kInt64
                    : array.dtype == "i4" ? torch::kInt32
                                          : torch::kUInt8;
  return torch::from_blob(const_cast<char*>(array.bytes.data()), array.shape, type).clone();
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

Record record_of(const Arrays& arrays, const std::string& where) {
  for (const char* name : {"logits", "labels"}) {
    check(arrays.contains(name), where, ": has no array '", name, "'");
  }
  Record record;
  record.logits = tensor_of(arrays.at("logits"));
  record.labels = tensor_of(arrays.at("labels"));
  record.features = optional_tensor(arrays, "features");
  record.weight = optional_tensor(arrays, "weight");
  record.bias = optional_tensor(arrays, "bias");
  check_floats(where, "logits", record.logits, 2);
  const auto samples = record.logits.size(0);
  record.classes = record.logits.size(1);
  check(samples > 0 && record.classes > 1, where,
        ": 'logits' must have at least one sample and two classes, got ", record.logits.sizes());
  check(!record.labels.is_floating_point() && record.labels.dim() == 1 &&
            record.labels.size(0) == samples,
        where, ": 'labels' must be ", samples, " whole numbers, got ", record.labels.sizes());
  record.labels = record.labels.to(torch::kInt64);
  check(record.labels.min().item<int64_t>() >= 0 &&
            record.labels.max().item<int64_t>() < record.classes,
        where, ": 'labels' must be in [0, ", record.classes, ")");
  if (record.features.defined()) {
    check_floats(where, "features", record.features, 2);
    check(record.features.size(0) == samples, where, ": 'features' must have ", samples,
          " rows, got ", record.features.sizes());
  }
  if (record.weight.defined()) {
    check_floats(where, "weight", record.weight, 2);
    check(record.weight.size(0) == record.classes, where, ": 'weight' must have ", record.classes,
          " rows, got ", record.weight.sizes());
  }
  if (record.bias.defined()) {
    check_floats(where, "bias", record.bias, 1);
    check(record.bias.size(0) == record.classes, where, ": 'bias' must have ", record.classes,
          " entries, got ", record.bias.sizes());
  }
  return record;
}

}  // namespace

Readings measure_dump(const std::filesystem::path& npz, const std::vector<std::string>& names) {
  const auto where = npz.string();
  const auto arrays =
      read_npz(npz, {"logits", "labels", "features", "weight", "bias", "temperature"});
  const auto record = record_of(arrays, where);
  MeasureContext context;
  if (arrays.contains("temperature")) {
    const auto temperature = tensor_of(arrays.at("temperature"));
    check(temperature.numel() == 1, where, ": 'temperature' must be a scalar, got ",
          temperature.sizes());
    context.temperature = temperature.to(torch::kFloat64).item<double>();
    check_temperature(where.c_str(), context.temperature);
  }

  Readings readings;
  for (const auto& name : names.empty() ? measures().names() : names) {
    Settings settings("measure." + name, {});
    auto measure = measures().find(name).make(context, settings);
    if (measure->needs().layers || measure->needs().attention) {
      check(names.empty(), where, ": measure '", name,
            "' needs what happens in all layers, which a dump of logits does not have");
      continue;
    }
    measure->update(record);
    for (auto& reading : measure->compute()) readings.push_back(std::move(reading));
  }
  return readings;
}

}  // namespace kelvin
