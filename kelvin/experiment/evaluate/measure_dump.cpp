#include "kelvin/experiment/evaluate/measure_dump.h"

#include <torch/torch.h>

#include <memory>
#include <set>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/data/batches.h"
#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/experiment/evaluate/dump.h"
#include "kelvin/experiment/evaluate/evaluation.h"
#include "kelvin/experiment/run/run_store.h"
#include "kelvin/measures/measure.h"

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

// A dump is one record of the test split, and has nothing else.
class DumpRecords : public RecordSource {
 public:
  DumpRecords(const Record& record, uint64_t seed) : record_(record), seed_(seed) {}

  bool has_train(const std::optional<size_t>& /*ood*/) const override { return false; }
  void show(const Pass& pass, const Consume& consume) override {
    consume(pass.sample > 0 ? sample_of(record_, pass.sample, seed_) : record_);
  }

 private:
  const Record& record_;
  uint64_t seed_;
};

struct NamedMeasure {
  std::string name;
  std::unique_ptr<Measure> measure;
};

// All there are unless some are asked for.
std::vector<NamedMeasure> candidates(const std::vector<std::string>& asked, const Config& settings,
                                     const MeasureContext& context) {
  std::vector<std::string> sections = {"measure"};
  for (const auto& name : measures().names()) sections.push_back("measure." + name);
  settings.reject_unknown_sections(sections);
  std::vector<NamedMeasure> made;
  std::set<std::string> seen;
  for (const auto& name : asked.empty() ? measures().names() : asked) {
    check(seen.insert(name).second, "measure.names: '", name, "' is there twice");
    auto own = settings.section("measure." + name);
    made.push_back({.name = name, .measure = measures().find(name).make(context, own)});
    own.reject_unknown_keys();
  }
  return made;
}

// Reads what some of the measures look at: a dump may hold gigabytes that none of them asks for.
void read_what_they_need(Dump& dump, const std::filesystem::path& npz,
                         const std::vector<NamedMeasure>& measures) {
  bool with_classifier = false;
  bool with_features = false;
  bool with_layers = false;
  for (const auto& [name, measure] : measures) {
    const auto needs = measure->needs();
    if (needs.attention || needs.layer_inputs || needs.gradients) continue;  // in no dump
    if (dynamic_cast<const UsesLogitsAlone*>(measure.get()) != nullptr) continue;
    with_classifier = true;
    with_features |= dynamic_cast<const UsesNoFeatures*>(measure.get()) == nullptr;
    with_layers |= needs.layers;
  }
  if (with_classifier) add_classifier(dump, npz, with_features);
  if (with_layers) add_layers(dump, npz);
}

// Those that lack nothing; an Error if one lacks something that was asked for.
MeasureSet measures_for(const Record& record, std::vector<NamedMeasure> candidates, bool are_asked,
                        const std::string& where) {
  MeasureSet set;
  for (auto& [name, measure] : candidates) {
    const auto missing = missing_for(*measure, record);
    check(!are_asked || missing.empty(), where, ": measure '", name, "' needs ", missing,
          ", which the dump does not have");
    if (missing.empty()) set.add(name, std::move(measure));
  }
  return set;
}

}  // namespace

Readings measure_dump(const std::filesystem::path& npz, const MeasureRequest& request,
                      const RunContext& context) {
  const auto where = npz.string();
  auto dump = read_dump(npz, {.with_classifier = false});
  const auto& record = dump.record;
  auto section = request.settings.section("measure");
  std::vector<std::string> names;
  MeasureContext known{.temperature = dump.temperature, .test_samples = record.logits.size(0)};
  section.read("names", names);
  read_memory(section, known.memory);
  section.reject_unknown_keys();
  auto wanted = candidates(names, request.settings, known);
  read_what_they_need(dump, npz, wanted);
  tell_of_guesses(dump, npz, context);
  if (const auto caveat = classifier_caveat(record, where); !caveat.empty()) context.warn(caveat);
  auto measures = measures_for(record, std::move(wanted), !names.empty(), where);
  const auto bytes = measures.checked_memory(record, record.logits.size(0), known.memory);
  context.inform_of_memory("measures hold", bytes, known.memory);
  DumpRecords records(record, derive_seed(known.seed, "measure"));
  Detection no_detectors;
  show_all(records, measures, no_detectors, context);
  auto [readings, curves, scores] = results_of(measures, no_detectors, {}, context);
  note_precision(dump, readings);
  request.on_readings(readings);
  if (!request.curves.empty()) write_curves(request.curves, curves);
  return readings;
}

}  // namespace kelvin
