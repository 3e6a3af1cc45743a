#include "kelvin/experiment/measure_dump.h"

#include <torch/torch.h>

#include <algorithm>
#include <set>

#include "kelvin/core/byte_text.h"
#include "kelvin/core/check.h"
#include "kelvin/core/npz_file.h"
#include "kelvin/core/seeds.h"
#include "kelvin/core/text.h"
#include "kelvin/data/batches.h"
#include "kelvin/experiment/curves_file.h"
#include "kelvin/experiment/measure_set.h"
#include "kelvin/math/softmax.h"
#include "kelvin/math/tensor_arrays.h"
#include "kelvin/measures/takes_test_split.h"

namespace kelvin {
namespace {

const std::string kLayer = "layer/";

bool is_wanted(const std::string& name) {
  static const std::set<std::string> wanted = {"logits", "labels", "features",
                                               "weight", "bias",   "temperature"};
  return wanted.contains(name) || name.starts_with(kLayer);
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
  record.layers = layers_of(arrays, record, where);
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

// What the dump lacks for a measure; empty if nothing.
std::string missing_for(const Measure& measure, const Record& record) {
  const auto needs = measure.needs();
  const auto* on_test = dynamic_cast<const TakesTestSplit*>(&measure);
  if (needs.attention) return "attention layers";
  if (needs.layer_inputs) return "weights and inputs of all layers";
  if (needs.gradients) return "gradients";
  if (needs.layers && needs.train_split && on_test == nullptr) {
    return "layers on the training split";
  }
  if (needs.layers && record.layers.empty()) return "layers ('layer/NAME', or 'features')";
  return on_test == nullptr ? "" : on_test->missing_in(record);
}

// The samples of a record in another order, and only so many.
Record sample_of(const Record& record, int64_t count, uint64_t seed) {
  const auto chosen = torch::tensor(shuffled_sample(seed, count, record.logits.size(0)));
  Record sample = record;
  sample.logits = record.logits.index_select(0, chosen);
  sample.labels = record.labels.index_select(0, chosen);
  if (record.features.defined()) sample.features = record.features.index_select(0, chosen);
  for (auto& layer : sample.layers) layer.output = layer.output.index_select(0, chosen);
  return sample;
}

MeasureSet measures_for(const Record& record, const std::vector<std::string>& names,
                        const Config& settings, const MeasureContext& context,
                        const std::string& where) {
  const bool is_asked = !names.empty();
  MeasureSet set;
  std::vector<std::string> sections = {"measure"};
  for (const auto& name : measures().names()) sections.push_back("measure." + name);
  settings.reject_unknown_sections(sections);
  for (const auto& name : is_asked ? names : measures().names()) {
    auto own = settings.section("measure." + name);
    auto measure = measures().find(name).make(context, own);
    own.reject_unknown_keys();
    const auto missing = missing_for(*measure, record);
    check(!is_asked || missing.empty(), where, ": measure '", name, "' needs ", missing,
          ", which the dump does not have");
    if (missing.empty()) set.add(name, std::move(measure));
  }
  return set;
}

}  // namespace

Readings measure_dump(const std::filesystem::path& npz, const MeasureRequest& request,
                      const RunContext& context) {
  const auto where = npz.string();
  const auto arrays = read_npz(npz, is_wanted);
  const auto record = record_of(arrays, where);
  auto section = request.settings.section("measure");
  std::vector<std::string> names;
  std::string memory = "4GiB";
  section.read("names", names);
  section.read("memory", memory);
  section.reject_unknown_keys();
  const MeasureContext known{.temperature = temperature_of(arrays, where),
                             .memory = bytes_of(memory, "measure.memory"),
                             .test_samples = record.logits.size(0)};
  auto measures = measures_for(record, names, request.settings, known, where);
  const auto bytes = measures.checked_memory(record, record.logits.size(0), known.memory);
  context.inform("measures hold at most " + byte_text(bytes) + " of the " +
                 byte_text(known.memory) + " they may");
  if (const auto count = measures.needs().sample; count > 0) {
    measures.see_sample(sample_of(record, count, named_seed(known.seed, "measure")));
  }
  do {
    measures.update(record);
  } while (measures.wants_another_pass());
  if (!request.curves.empty()) write_curves(request.curves, measures.curves());
  return measures.compute();
}

}  // namespace kelvin
