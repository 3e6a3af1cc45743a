#include "kelvin/experiment/evaluate/detect_in_dumps.h"

#include "kelvin/core/check.h"
#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/experiment/evaluate/detection.h"
#include "kelvin/experiment/evaluate/dump.h"
#include "kelvin/experiment/evaluate/evaluation.h"
#include "kelvin/runs/scores_file.h"

namespace kelvin {
namespace {

struct DetectSettings {
  std::vector<std::string> detectors = {kAllDetectors};
  OodGroups groups;
  double temperature = 0;  // 0: that of the dump
};

DetectSettings read_settings(const Config& config) {
  DetectSettings read;
  auto settings = config.section("measure");
  settings.read("detectors", read.detectors);
  settings.read("near", read.groups.near);
  settings.read("far", read.groups.far);
  settings.read("temperature", read.temperature);
  settings.reject_unknown_keys();
  check_not_negative("measure.temperature", read.temperature);
  std::vector<std::string> sections = {"measure"};
  for (const auto& name : detectors().names()) sections.push_back("detector." + name);
  config.reject_unknown_sections(sections);
  return read;
}

Detection detectors_for(const DetectSettings& read, const Config& config, double temperature) {
  Detection detection;
  const bool is_optional = read.detectors == std::vector<std::string>{kAllDetectors};
  for (const auto& name : detector_names(read.detectors)) {
    auto settings = config.section("detector." + name);
    detection.add(detectors().find(name).make({.temperature = temperature}, settings), is_optional);
    settings.reject_unknown_keys();
  }
  return detection;
}

void check_same_network(const Dump& dump, const Dump& of_training,
                        const std::filesystem::path& npz) {
  const auto& record = dump.record;
  const auto& train = of_training.record;
  check(dump.temperature == of_training.temperature, npz.string(), ": 'temperature' must be ",
        of_training.temperature, " as in training, got ", dump.temperature);
  check(!record.weight.defined() || !train.weight.defined() ||
            torch::equal(record.weight.to(torch::kFloat64), train.weight.to(torch::kFloat64)),
        npz.string(), ": 'weight' must be that of the training samples' dump, or left out");
  check(record.logits.size(1) == train.logits.size(1), npz.string(), ": 'logits' must have ",
        train.logits.size(1), " classes as those of the training samples, got ",
        record.logits.size(1));
  check(record.features.defined() == train.features.defined(), npz.string(), ": must ",
        train.features.defined() ? "have" : "not have", " 'features', as the training samples do");
  check(!record.features.defined() || record.features.size(1) == train.features.size(1),
        npz.string(), ": 'features' must be ",
        train.features.defined() ? train.features.size(1) : 0,
        " wide as those of the training samples, got ",
        record.features.defined() ? record.features.size(1) : 0);
}

void warn_of_classifier(const Record& record, const std::filesystem::path& npz,
                        const RunContext& context) {
  const auto caveat = classifier_caveat(record, npz.string());
  if (!caveat.empty()) context.warn(caveat);
}

// Known if `ood` is empty.
Record test_record(const std::filesystem::path& npz, const std::string& ood, const Dump& train,
                   const RunContext& context) {
  auto dump = read_dump(npz, {.needs_labels = false});
  tell_of_guesses(dump, npz, context);
  check_same_network(dump, train, npz);
  dump.record.ood = ood;
  dump.record.weight = train.record.weight;
  dump.record.bias = train.record.bias;
  warn_of_classifier(dump.record, npz, context);
  return dump.record;
}

// Reads each dump when it is shown: only that of training samples is held all the time.
class DumpFiles : public RecordSource {
 public:
  DumpFiles(const DetectRequest& request, const Dump& train, const RunContext& context)
      : request_(request), train_(train), context_(context) {}

  size_t ood_datasets() const override { return request_.ood.size(); }
  bool has_train(const std::optional<size_t>& ood) const override { return !ood; }
  void show(const Pass& pass, const Consume& consume) override {
    if (pass.split == Split::train) return consume(train_.record);
    if (!pass.ood) return consume(test_record(request_.id_test, "", train_, context_));
    const auto& [name, npz] = request_.ood[*pass.ood];
    consume(test_record(npz, name, train_, context_));
  }

 private:
  const DetectRequest& request_;
  const Dump& train_;
  const RunContext& context_;
};

}  // namespace

Readings detect_in_dumps(const DetectRequest& request, const RunContext& context) {
  check(!request.ood.empty(), "--ood: needs at least one dump of OOD samples, as NAME=x.npz");
  std::vector<std::string> names;
  names.reserve(request.ood.size());
  for (const auto& each : request.ood) names.push_back(each.name);
  check_ood_names("--ood", names);
  const auto read = read_settings(request.settings);
  check_members(read.groups, names);
  auto train = read_dump(request.id_train);
  tell_of_guesses(train, request.id_train, context);
  train.record.split = Split::train;
  warn_of_classifier(train.record, request.id_train, context);
  const auto temperature = read.temperature > 0 ? read.temperature : train.temperature;
  auto detection = detectors_for(read, request.settings, temperature);
  DumpFiles records(request, train, context);
  MeasureSet no_measures;
  show_all(records, no_measures, detection, context);
  auto [readings, curves, scores] = results_of(no_measures, detection, read.groups, context);
  note_precision(train, readings);
  request.on_readings(readings);
  if (!request.scores.empty()) {
    for (const auto& each : scores) write_scores(request.scores, each);
  }
  return readings;
}

namespace {

const bool detect_in_dumps_registered = add_task(detect_in_dumps);

}  // namespace
}  // namespace kelvin
