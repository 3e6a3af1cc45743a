#include "kelvin/experiment/evaluate/calibration_data.h"

#include <torch/torch.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/core/text.h"
#include "kelvin/data/batches.h"
#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/experiment/evaluate/dump.h"
#include "kelvin/experiment/evaluate/extract.h"
#include "kelvin/experiment/evaluate/measure_model.h"
#include "kelvin/experiment/evaluate/trained_network.h"
#include "kelvin/measures/calibration.h"
#include "kelvin/numerics/calibration.h"

namespace kelvin {
namespace {

constexpr const char* kMeasure = "calibration";

// Two random halves of what was to be tested on.
std::pair<LabelledLogits, LabelledLogits> halves_of(const LabelledLogits& whole, uint64_t seed) {
  const auto samples = whole.size();
  check(samples >= 2, "calibrate: needs at least 2 samples, one to fit on and one to test on, got ",
        samples);
  const auto chosen =
      torch::tensor(fixed_sample(derive_seed(seed, "calibrate"), samples / 2, samples));
  const auto is_chosen = torch::zeros({samples}, torch::kBool).index_fill_(0, chosen, true);
  const auto others = is_chosen.logical_not().nonzero().squeeze(1);
  const auto part = [&](const torch::Tensor& places) {
    return LabelledLogits{.logits = whole.logits.index_select(0, places),
                          .labels = whole.labels.index_select(0, places)};
  };
  return {part(chosen), part(others)};
}

void describe(CalibrationData& data, const std::string& fitted_on, const std::string& tested_on) {
  data.samples = {{"fitted_on", fitted_on},
                  {"fit_samples", data.fit.size()},
                  {"tested_on", tested_on},
                  {"samples", data.test.size()},
                  {"precision", data.precision}};
}

// `what` is what is halved, such as "the test split".
void use_halves(CalibrationData& data, const LabelledLogits& whole, const std::string& what,
                uint64_t seed) {
  std::tie(data.fit, data.test) = halves_of(whole, seed);
  describe(data, "a random half of " + what, "the other half of " + what);
  data.samples["halves_seed"] = seed;
}

// Logits as they come, and once more: while halves are taken, or scaled, in double precision.
void check_memory(int64_t samples, int64_t classes, int64_t bytes_each, int64_t bins, int64_t limit,
                  const RunContext& context) {
  const auto bytes = samples * classes * (bytes_each + static_cast<int64_t>(sizeof(double))) +
                     CalibrationSums::bytes(classes, samples, bins);
  check(bytes <= limit, "measure.memory: calibrating needs ", byte_text(bytes), " for ", samples,
        " samples of ", classes, " classes; ", byte_text(limit), " are allowed");
  context.inform_of_memory("calibrating holds", bytes, limit);
}

// The settings that mean something without a network.
struct DumpSettings {
  uint64_t seed = 0;
  double temperature = 0;  // 0: that of the dump
  int64_t memory = MeasureContext().memory;
  int64_t bins = 0;
};

DumpSettings dump_settings(const Config& config) {
  DumpSettings settings;
  int64_t seed = 0;
  auto top = config.section("");
  top.read("seed", seed);
  top.reject_unknown_keys();
  check(seed >= 0, "seed: must not be below 0, got ", seed);
  auto section = config.section("measure");
  section.read("temperature", settings.temperature);
  read_memory(section, settings.memory);
  section.reject_unknown_keys();
  check_not_negative("measure.temperature", settings.temperature);
  const auto name = std::string("measure.") + kMeasure;
  auto own = config.section(name);
  settings.bins = read_calibration_bins(own);
  own.reject_unknown_keys();
  config.reject_unknown_sections({"measure", name});
  settings.seed = static_cast<uint64_t>(seed);
  return settings;
}

LabelledLogits logits_of(const Record& record) {
  return {.logits = record.logits, .labels = record.labels};
}

std::string dump_precision(const Dump& dump) {
  const std::string sums = "float64 sums of logits as they were dumped";
  const auto narrow = dump.narrow.find("logits");
  return narrow == dump.narrow.end() ? sums : sums + ", in " + narrow->second;
}

CalibrationData from_dumps(const CalibrateRequest& request, const RunContext& context) {
  const auto settings = dump_settings(request.settings);
  const auto name = request.validation.filename().string();
  const auto validation = read_dump(request.validation, {.with_classifier = false});
  tell_of_guesses(validation, request.validation, context);
  const auto& logits = validation.record.logits;
  CalibrationData data;
  data.precision = dump_precision(validation);
  data.bins = settings.bins;
  data.temperature = settings.temperature > 0 ? settings.temperature : validation.temperature;
  data.fit_split = "validation";
  if (request.test.empty()) {
    check_memory(logits.size(0), logits.size(1), logits.element_size(), data.bins, settings.memory,
                 context);
    use_halves(data, logits_of(validation.record), name, settings.seed);
    return data;
  }
  const auto test = read_dump(request.test, {.with_classifier = false});
  tell_of_guesses(test, request.test, context);
  check(test.record.classes == validation.record.classes, request.test.string(),
        ": 'logits' must have as many classes as ", name, ", ", validation.record.classes, ", got ",
        test.record.classes);
  check(settings.temperature > 0 || test.temperature == validation.temperature,
        request.test.string(), ": 'temperature' must be that of ", name, ", ",
        validation.temperature, ", got ", test.temperature);
  check_memory(logits.size(0) + test.record.logits.size(0), logits.size(1), logits.element_size(),
               data.bins, settings.memory, context);
  data.fit = logits_of(validation.record);
  data.test = logits_of(test.record);
  describe(data, name, request.test.filename().string());
  return data;
}

// What the network does with the images that `dataset` has for testing.
LabelledLogits logits_on(TrainedNetwork& network, const Dataset& dataset,
                         const RunContext& context) {
  std::vector<torch::Tensor> logits;
  std::vector<torch::Tensor> labels;
  int64_t done = 0;
  extract(*network.model, dataset, network.data.own, {}, [&](const Record& record) {
    if (context.should_stop()) throw MeasuringStopped("stopped while calibrating; nothing written");
    logits.push_back(record.logits);
    labels.push_back(record.labels);
    done += record.labels.size(0);
    context.report_progress({.phase = "calibrate", .done = done, .total = dataset.test.size()});
  });
  return {.logits = torch::cat(logits), .labels = torch::cat(labels)};
}

CalibrationData from_network(const CalibrateRequest& request, const RunContext& context) {
  auto changes = request.settings;
  changes.set("data.ood", std::vector<std::string>());  // nothing OOD is looked at
  const bool is_run = !request.run.empty();
  auto network = is_run ? open_run(request.run, changes, context) : open_weights(changes, context);
  const auto& own = network.data.own;
  const auto& settings = network.settings;
  settings.check_classifies("calibrate:");
  const bool tests_on_validation = settings.request.test_on_validation;
  const bool has_validation = own.validation.size() > 0 && !tests_on_validation;
  CalibrationData data;
  data.precision = "float32 forward, float64 sums";
  data.temperature = settings.context().temperature;
  data.bins = settings.resolved.at(std::string("measure.") + kMeasure + ".bins").get<int64_t>();
  check_memory(own.test.size() + (has_validation ? own.validation.size() : 0), own.classes,
               sizeof(float), data.bins, settings.measure.memory, context);
  if (!has_validation) {
    data.fit_split = "test";
    use_halves(data, logits_on(network, own, context),
               tests_on_validation ? "the validation split" : "the test split",
               static_cast<uint64_t>(settings.seed));
    return data;
  }
  if (!is_run) {
    context.warn(
        "data.validation_samples: the weights may have been trained on these images; then "
        "the temperature comes out too low");
  }
  auto held_out = own;
  held_out.test = own.validation;
  data.fit = logits_on(network, held_out, context);
  data.test = logits_on(network, own, context);
  data.fit_split = "validation";
  describe(data, "the validation split", "the test split");
  return data;
}

}  // namespace

CalibrationData calibration_data(const CalibrateRequest& request, const RunContext& context) {
  return request.validation.empty() ? from_network(request, context) : from_dumps(request, context);
}

}  // namespace kelvin
