#include "kelvin/experiment/evaluate/dump.h"

#include <torch/types.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/experiment/run/run_store.h"
#include "kelvin/formats/npz_file.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {
namespace {

const std::string kLayer = "layer/";
constexpr auto kBfloat16 = "bfloat16";

// Arrays of an npz as tensors, as measures take them.
class DumpArrays {
 public:
  DumpArrays(
      const std::filesystem::path& npz, const std::function<bool(const std::string&)>& is_wanted,
      const std::function<void(const std::string&, const Array&)>& check_header =
          [](const std::string&, const Array&) {})
      : where_(npz.string()), arrays_(read_npz(npz, is_wanted, check_header)) {}

  const std::string& where() const { return where_; }
  const Arrays& all() const { return arrays_; }
  bool has(const std::string& name) const { return arrays_.contains(name); }

  torch::Tensor at(const std::string& name) const {
    return tensor_of(arrays_.at(name), where_ + ": '" + shown_text(name) + "'");
  }

  // Exactly, but in no less than 32 bits: there are no sums in fewer.  Undefined if there is none.
  torch::Tensor numbers(const std::string& name, Dump& dump) const {
    if (!has(name)) return {};
    const auto tensor = at(name);
    if (!tensor.is_floating_point() || tensor.element_size() > 2) return tensor;
    dump.narrow[name] = tensor.scalar_type() == torch::kFloat16 ? "float16" : kBfloat16;
    return tensor.to(torch::kFloat32);
  }

 private:
  std::string where_;
  Arrays arrays_;
};

void check_floats(const std::string& where, const std::string& name, const torch::Tensor& tensor,
                  int64_t dims) {
  check(tensor.dim() == dims && tensor.is_floating_point(), where, ": '", name,
        "' must be floating with ", dims, " dimensions, got ", tensor.sizes());
  check(torch::isfinite(tensor).all().item<bool>(), where, ": '", name,
        "' must be finite, has a NaN or an infinity");
}

// Labels and temperature are small beside the logits: what is not is refused unread.
void check_small(const std::string& where, const std::string& name, const Array& header,
                 int64_t samples) {
  const torch::IntArrayRef sizes(header.shape);
  if (name == "temperature") {
    check(header.size() == 1, where, ": 'temperature' must be a scalar, got ", sizes);
  } else {
    const bool is_column = sizes.size() == 2 && sizes[1] == 1;
    check((sizes.size() == 1 || is_column) && sizes[0] == samples, where, ": 'labels' must be ",
          samples, " whole numbers, got ", sizes);
  }
}

// Whole numbers of any type, also as a column.
torch::Tensor labels_of(const DumpArrays& arrays, const Record& record) {
  const auto& where = arrays.where();
  check(arrays.has("labels"), where, ": has no array 'labels'");
  auto labels = arrays.at("labels").flatten();
  if (labels.is_floating_point()) {
    labels = labels.to(torch::kFloat64);
    // Infinity and NaN are none either; larger ones are not classes, and would overflow.
    const auto are_whole = labels.eq(labels.round()).logical_and(labels.abs().lt(1e15));
    const auto others = labels.masked_select(are_whole.logical_not());
    check(others.numel() == 0, where, ": 'labels' must be whole numbers, one is ",
          others.numel() == 0 ? 0 : others[0].item<double>());
  }
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

void set_logits(Dump& dump, const DumpArrays& arrays) {
  const auto& where = arrays.where();
  check(arrays.has("logits"), where, ": has no array 'logits'");
  auto& record = dump.record;
  record.logits = arrays.numbers("logits", dump);
  check_floats(where, "logits", record.logits, 2);
  record.classes = record.logits.size(1);
  check(record.logits.size(0) > 0 && record.classes > 1, where,
        ": 'logits' must have at least one sample and two classes, got ", record.logits.sizes());
}

double temperature_of(const DumpArrays& arrays) {
  if (!arrays.has("temperature")) return 1;
  const auto& where = arrays.where();
  const auto temperature = arrays.at("temperature").to(torch::kFloat64).item<double>();
  check_temperature(where.c_str(), temperature);
  return temperature;
}

// What the classifier gives, in float64; of some samples at a time, because features may be many.
torch::Tensor dumped_logits(const Record& record) {
  constexpr int64_t kTogether = 4096;
  const auto weight = record.weight.to(torch::kFloat64).t();
  std::vector<torch::Tensor> parts;
  for (const auto& rows : record.features.split(kTogether)) {
    parts.push_back(rows.to(torch::kFloat64).matmul(weight));
  }
  const auto logits = torch::cat(parts);
  return record.bias.defined() ? logits + record.bias.to(torch::kFloat64) : logits;
}

}  // namespace

Dump read_dump(const std::filesystem::path& npz, const DumpOptions& options) {
  Dump dump;
  set_logits(dump, DumpArrays(npz, [](const std::string& name) { return name == "logits"; }));
  const DumpArrays arrays(
      npz,
      [&](const std::string& name) {
        return name == "temperature" || (options.needs_labels && name == "labels");
      },
      [&](const std::string& name, const Array& header) {
        check_small(npz.string(), name, header, dump.record.logits.size(0));
      });
  if (options.needs_labels) dump.record.labels = labels_of(arrays, dump.record);
  if (options.with_classifier) add_classifier(dump, npz);
  if (options.with_layers) add_layers(dump, npz);
  dump.temperature = temperature_of(arrays);
  return dump;
}

void add_classifier(Dump& dump, const std::filesystem::path& npz, bool with_features) {
  const DumpArrays arrays(npz, [&](const std::string& name) {
    return name == "weight" || name == "bias" || (with_features && name == "features");
  });
  auto& record = dump.record;
  record.features = arrays.numbers("features", dump);
  record.weight = arrays.numbers("weight", dump);
  record.bias = arrays.numbers("bias", dump);
  if (record.features.defined()) {
    check_floats(arrays.where(), "features", record.features, 2);
    check(record.features.size(0) == record.logits.size(0) && record.features.size(1) > 0,
          arrays.where(), ": 'features' must have ", record.logits.size(0),
          " rows and at least one column, got ", record.features.sizes());
  }
  check_classifier(record, arrays.where());
}

// In order of their names; the classifier's input if there are none.
void add_layers(Dump& dump, const std::filesystem::path& npz) {
  auto& record = dump.record;
  const DumpArrays arrays(npz, [](const std::string& name) { return name.starts_with(kLayer); });
  for (const auto& [name, array] : arrays.all()) {
    if (!name.starts_with(kLayer)) continue;
    LayerRecord layer;
    layer.name = name.substr(kLayer.size());
    layer.output = arrays.numbers(name, dump);
    check(layer.output.dim() >= 2 && layer.output.size(0) == record.logits.size(0) &&
              layer.output.numel() > 0,
          arrays.where(), ": '", name, "' must be [", record.logits.size(0), ", ...], got ",
          layer.output.sizes());
    check_floats(arrays.where(), name, layer.output, layer.output.dim());
    record.layers.push_back(layer);
  }
  std::sort(record.layers.begin(), record.layers.end(),
            [](const auto& a, const auto& b) { return comes_before(a.name, b.name); });
  if (!record.layers.empty() || !record.features.defined()) return;
  LayerRecord features;
  features.name = "features";
  features.output = record.features;
  record.layers.push_back(features);
}

void note_precision(const Dump& dump, Readings& readings) {
  if (dump.narrow.empty()) return;
  std::vector<std::string> parts;
  for (const auto& [name, precision] : dump.narrow) parts.push_back(name + " as " + precision);
  for (auto& reading : readings) reading.definition["dumped"] = join(parts, ", ");
}

void tell_of_guesses(const Dump& dump, const std::filesystem::path& npz,
                     const RunContext& context) {
  for (const auto& [name, precision] : dump.narrow) {
    if (precision != kBfloat16) continue;
    context.inform(npz.string() + ": '" + name +
                   "' has elements of two bytes and no type; taken for bfloat16");
  }
}

std::string classifier_caveat(const Record& record, const std::string& where) {
  if (!record.weight.defined() || !record.features.defined()) return "";
  const auto logits = record.logits.to(torch::kFloat64);
  const auto expected = dumped_logits(record);
  // What bfloat16 may round away, and sums of it.
  constexpr double kRounding = 0.03;
  const auto largest = [](const torch::Tensor& values) {
    return values.abs().max().item<double>();
  };
  const auto scale = std::max(largest(logits), largest(expected));
  const auto apart = largest(logits - expected);
  if (apart <= kRounding * scale) return "";
  auto text = c10::str(where, ": 'weight'", record.bias.defined() ? " and 'bias'" : "",
                       " do not give 'logits' from 'features' (up to ", short_number(apart),
                       " apart): detectors that use them mean nothing");
  const auto factor = ((logits * expected).sum() / expected.square().sum()).item<double>();
  if (largest(logits - factor * expected) <= kRounding * largest(logits)) {
    text += c10::str("; logits are ", short_number(factor),
                     " times what they give: store them before the division by a temperature");
  }
  return text;
}

}  // namespace kelvin
