#include "kelvin/experiment/measure_dump.h"

#include <torch/torch.h>

#include "kelvin/core/byte_text.h"
#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/data/batches.h"
#include "kelvin/experiment/curves_file.h"
#include "kelvin/experiment/dump.h"
#include "kelvin/experiment/measure_set.h"
#include "kelvin/measures/takes_test_split.h"

namespace kelvin {
namespace {

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
  const auto [record, temperature] = read_dump(npz, {.with_layers = true});
  auto section = request.settings.section("measure");
  std::vector<std::string> names;
  std::string memory = "4GiB";
  section.read("names", names);
  section.read("memory", memory);
  section.reject_unknown_keys();
  const MeasureContext known{.temperature = temperature,
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
  auto readings = measures.compute();
  request.on_readings(readings);
  if (!request.curves.empty()) write_curves(request.curves, measures.curves());
  return readings;
}

}  // namespace kelvin
