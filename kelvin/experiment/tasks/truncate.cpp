#include "kelvin/experiment/tasks/truncate.h"

#include <torch/torch.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/experiment/evaluate/extract.h"
#include "kelvin/experiment/evaluate/measure_model.h"
#include "kelvin/experiment/evaluate/trained_network.h"
#include "kelvin/measures/probes.h"
#include "kelvin/model/description.h"
#include "kelvin/model/truncated.h"
#include "kelvin/model/weights.h"

namespace kelvin {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kProbe = "linear_probe";

// What probes say of each layer, in order.
struct ProbedLayers {
  std::vector<std::string> names = {};
  std::vector<double> accuracies = {};
  NamedTensors probes = {};
  int64_t pool = 0;
  double threshold = 0;
};

ProbedLayers probed_layers(TrainedNetwork& network, const RunContext& context) {
  auto& settings = network.settings;
  settings.measure.names = {kProbe};
  settings.measure.detectors.clear();
  auto measured = measure_model(*network.model, network.data.own, {}, settings, context);
  ProbedLayers layers{.probes = std::move(measured.curves)};
  for (const auto& reading : measured.readings) {
    if (reading.name == "kappa") layers.threshold = reading.definition.at("threshold");
    if (reading.name != "probe_accuracy") continue;
    layers.names.push_back(reading.layer);
    layers.accuracies.push_back(reading.value);
    layers.pool = reading.definition.at("pool");
  }
  return layers;
}

// Which layer is to be the last, counted from 0.
size_t place_of_cut(const ProbedLayers& layers, const std::string& wanted,
                    const RunContext& context) {
  if (!wanted.empty()) {
    const auto found = std::find(layers.names.begin(), layers.names.end(), wanted);
    return static_cast<size_t>(found - layers.names.begin());
  }
  const auto place = sufficient_place(layers.accuracies, layers.threshold);
  if (place + 1 == layers.names.size()) {
    context.warn(c10::str("nothing is cut: no layer before the last, '", layers.names.back(),
                          "', has a probe that reaches ", layers.threshold,
                          " of its probe's accuracy"));
  }
  return place;
}

// The cut network has what a layer hands on, pooled as these probes pool it; nothing OOD is
// looked at.
Config with_its_probes(Config settings) {
  const Values fixed = {{"measure.linear_probe.tap", "output"},
                        {"measure.linear_probe.protocol", "diagnose"},
                        {"data.ood", std::vector<std::string>()}};
  for (const auto& [key, value] : fixed) {
    const auto asked = settings.has(key) ? settings.at(key) : value;
    check(asked == value, key, ": must be ", value.dump(), " to truncate a network, got ",
          asked.dump());
    settings.set(key, value);
  }
  settings.set("measure.linear_probe.keep_weights", true);
  return settings;
}

// Said before minutes of probing, not after them.
void check_cut(const TrainedNetwork& network, const ModelShape& shape, const std::string& layer) {
  network.settings.check_classifies("truncate:");
  check(network.settings.model != "truncated", "truncate: this network is truncated already");
  check(!models().find(network.settings.model).is_of_file,
        "truncate: a network with its own code cannot be cut");
  if (layer.empty()) return;
  const auto taps = taps_of_one_image(*network.model, shape);
  const bool is_there = std::any_of(taps.layers().begin(), taps.layers().end(),
                                    [&](const auto& each) { return each.name == layer; });
  check(is_there, "--layer: there is no layer '", layer, "'");
}

// What `model.of` has to be told besides its name, as KEY=VALUE.
std::vector<std::string> model_settings(const RunSettings& settings) {
  std::vector<std::string> overrides;
  for (const auto& [key, value] : settings.resolved.values()) {
    if (!key.starts_with("model.") || key == "model.name") continue;
    overrides.push_back(
        c10::str(key, "=", value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return overrides;
}

struct Performance {
  double accuracy = 0;
  double seconds = 0;  // of the forward passes
};

// Both networks batch by batch in turns, so that both see the same machine.
std::pair<Performance, Performance> performances(Model& whole, Model& cut, const Dataset& dataset,
                                                 const RunContext& context) {
  constexpr int64_t kTurn = 500;
  std::pair<Performance, Performance> both;
  const auto samples = dataset.test.size();
  const auto run = [&](Model& model, Performance& result, const std::vector<int64_t>& indices) {
    const auto began = context.seconds();
    extract(model, dataset, dataset, {.indices = indices}, [&](const Record& record) {
      result.accuracy += (record.logits.argmax(1) == record.labels).sum().item<double>();
    });
    result.seconds += context.seconds() - began;
  };
  for (int64_t begin = 0; begin < samples; begin += kTurn) {
    std::vector<int64_t> indices;
    indices.reserve(kTurn);
    for (auto i = begin; i < std::min(begin + kTurn, samples); ++i) indices.push_back(i);
    run(whole, both.first, indices);
    run(cut, both.second, indices);
    if (context.should_stop()) throw MeasuringStopped("stopped while comparing; nothing written");
  }
  for (auto* each : {&both.first, &both.second}) each->accuracy /= static_cast<double>(samples);
  return both;
}

Json summary_of(const ModelDescription& network, const Performance& performance, int64_t samples) {
  Json summary = {{"accuracy", performance.accuracy},
                  {"parameters", network.parameters},
                  {"macs", network.macs}};
  if (performance.seconds > 0) {
    summary["images_per_second"] = static_cast<double>(samples) / performance.seconds;
  }
  return summary;
}

}  // namespace

size_t sufficient_place(const std::vector<double>& accuracies, double threshold) {
  check(!accuracies.empty() && accuracies.back() > 0,
        "truncate: the probe of the last layer gets no sample right, so that any layer would do; "
        "name one (--layer)");
  return first_sufficient(accuracies, threshold) - 1;
}

Json truncate(const TruncateRequest& request, const RunContext& context) {
  const torch::NoGradGuard no_grad;
  check(request.output.empty() || !std::filesystem::exists(request.output),
        "--output: ", request.output.string(), " exists already");
  const auto changes = with_its_probes(request.settings);
  auto network = request.run.empty() ? open_weights(changes, context)
                                     : open_run(request.run, changes, context);
  const auto& dataset = network.data.own;
  const auto shape = shape_for(network.settings, dataset);
  check_cut(network, shape, request.layer);
  const auto layers = probed_layers(network, context);
  const auto place = place_of_cut(layers, request.layer, context);
  const auto& layer = layers.names[place];

  // Cutting takes a network apart, and the whole one is compared with.
  const auto copy = network.settings.build_model(shape);
  auto weights = weights_of(*copy);
  copy_weights(weights_of(*network.model), weights, "truncate");
  copy->to(device_of(network.settings.device));
  const auto cut =
      std::make_shared<Truncated>(copy, Truncation{.layer = layer, .pool = layers.pool}, shape);
  cut->set_probe(layers.probes.at("probe_weight/" + layer),
                 layers.probes.at("probe_bias/" + layer));
  const auto [of_whole, of_cut] = performances(*network.model, *cut, dataset, context);
  if (!request.output.empty()) save_weights(request.output, *cut);

  const auto samples = dataset.test.size();
  return {{"model", network.settings.model},
          {"layer", layer},
          {"place", place + 1},
          {"layers", layers.names.size()},
          {"threshold", layers.threshold},
          {"chosen", request.layer.empty() ? "by its probe" : "by name"},
          {"pool", layers.pool},
          {"settings", model_settings(network.settings)},
          {"samples", samples},
          {"truncated", summary_of(describe(*cut, shape), of_cut, samples)},
          {"whole", summary_of(describe(*network.model, shape), of_whole, samples)}};
}

namespace {

const bool truncate_registered = add_task(truncate);

}  // namespace
}  // namespace kelvin
