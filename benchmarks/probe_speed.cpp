// Probes of all layers of the published ResNet-20 on CIFAR-10; benchmarks/probe_speed.py runs it.
//   kelvin_probe_speed probe DATA TRAIN TEST FOLDER [SETTING=VALUE...]
// prints seconds of the probes and of the forward passes, the memory at its peak, and each layer's
// width and accuracy, and writes which test samples each probe is right about, a byte each;
// settings are those of measure.linear_probe, protocol reproduce if not given.
//   kelvin_probe_speed features DATA TRAIN TEST LAYER FOLDER
// writes one layer's flattened features and the labels of both splits for others to probe.

#include <sys/resource.h>
#include <torch/torch.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>

#include "benchmarks/tool_process.h"
#include "kelvin/core/check.h"
#include "kelvin/data/batches.h"
#include "kelvin/experiment/evaluate/extract.h"
#include "kelvin/experiment/evaluate/measure_set.h"
#include "kelvin/model/weights.h"
#include "kelvin/ops/layer_matrices.h"

namespace {

using kelvin::Record;
using kelvin::Split;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Network {
  kelvin::Dataset dataset;
  std::shared_ptr<kelvin::Model> model;
  int64_t train = 0;
  int64_t test = 0;

  // A pass over one split, in an order of its own.
  void show(Split split, int64_t pass, const std::function<void(const Record&)>& consume) const {
    const auto& images = split == Split::train ? dataset.train : dataset.test;
    const auto sample =
        kelvin::shuffled_sample(0, split == Split::train ? train : test, images.size());
    std::vector<int64_t> indices;
    for (const auto place : kelvin::epoch_order(0, pass, static_cast<int64_t>(sample.size()))) {
      indices.push_back(sample[static_cast<size_t>(place)]);
    }
    kelvin::extract(*model, dataset, dataset,
                    {.split = split, .with_layers = true, .indices = indices}, consume);
  }
};

Network network(const std::filesystem::path& data, int64_t train, int64_t test) {
  kelvin::Settings settings("model", {});
  Network result{
      .dataset = kelvin::load_dataset(
          "cifar10", {.data_folder = data, .normalisation = kelvin::Normalisation::imagenet}),
      .model = kelvin::models().find("resnet20").build({.classes = 10}, settings)};
  kelvin::load_weights(data / "weights" / "cifar10-resnet20.safetensors", *result.model);
  result.model->eval();
  result.train = std::min(train, result.dataset.train.size());
  result.test = std::min(test, result.dataset.test.size());
  return result;
}

std::string protocol_of(const kelvin::Values& values) {
  return values.at("protocol").get<std::string>();
}

void write_hits(const kelvin::Measure& probes, const std::filesystem::path& folder) {
  const std::string prefix = "/hits/";  // of the trained dataset, which has no name there
  for (const auto& [name, hits] : probes.state()) {
    if (!name.starts_with(prefix)) continue;
    std::ofstream file(folder / (name.substr(prefix.size()) + ".hits"), std::ios::binary);
    const auto bytes = hits.to(torch::kUInt8).contiguous();
    file.write(static_cast<const char*>(bytes.data_ptr()),
               static_cast<std::streamsize>(bytes.nbytes()));
  }
}

void probe(const Network& network, const std::filesystem::path& folder, kelvin::Values values) {
  values.emplace("protocol", "reproduce");
  kelvin::Settings settings("measure.linear_probe", values);
  kelvin::MeasureSet measures;
  auto owned = kelvin::measures().find("linear_probe").make({}, settings);
  const auto& probes = *owned;
  measures.add("linear_probe", std::move(owned));
  settings.reject_unknown_keys();
  Record example;
  kelvin::extract(*network.model, network.dataset, network.dataset,
                  {.with_layers = true, .indices = kelvin::shuffled_sample(0, 128, 128)},
                  [&](const Record& record) { example = record; });  // and warms up
  const auto bytes =
      measures.checked_memory(example, network.train + network.test, int64_t{64} << 30);
  example = {};

  double probing = 0;
  const double start = now();
  const auto update = [&](const Record& record) {
    const double begin = now();
    measures.update(record);
    probing += now() - begin;
  };
  int64_t passes = 0;
  bool is_wanted = true;
  while (is_wanted) {
    network.show(Split::train, passes++, update);
    const double begin = now();
    is_wanted = measures.wants_train_again();
    probing += now() - begin;
  }
  network.show(Split::test, 0, update);
  const double begin = now();
  const auto readings = measures.compute();
  probing += now() - begin;
  const double total = now() - start;

  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  std::cout << "protocol " << protocol_of(values) << "\npasses " << passes << "\nprobing "
            << probing << "\nforward " << total - probing << "\ncounted " << bytes << "\npeak "
            << int64_t{usage.ru_maxrss} * 1024 << "\n";
  for (const auto& reading : readings) {
    if (reading.name != "probe_accuracy") continue;
    std::cout << "layer " << reading.layer << " " << reading.definition["width"] << " "
              << reading.value << " " << reading.interval->low << " " << reading.interval->high
              << " " << reading.definition.value("l2", 0.) << "\n";
  }
  write_hits(probes, folder);
}

void write_features(const Network& network, const std::string& layer,
                    const std::filesystem::path& folder) {
  for (const auto split : {Split::train, Split::test}) {
    std::ofstream features(folder / (std::string(kelvin::name_of(split)) + "_features.f32"),
                           std::ios::binary);
    std::ofstream labels(folder / (std::string(kelvin::name_of(split)) + "_labels.i64"),
                         std::ios::binary);
    network.show(split, 0, [&](const Record& record) {
      for (const auto& each : record.layers) {
        if (each.name != layer) continue;
        const auto rows = kelvin::feature_rows(each.output).to(torch::kFloat32).contiguous();
        features.write(static_cast<const char*>(rows.data_ptr()),
                       static_cast<std::streamsize>(rows.nbytes()));
      }
      labels.write(static_cast<const char*>(record.labels.data_ptr()),
                   static_cast<std::streamsize>(record.labels.nbytes()));
    });
    kelvin::check(features.good() && labels.good() && features.tellp() > 0, folder.string(),
                  ": cannot write the features of layer '", layer, "'");
  }
}

// A number, a list of numbers, or a word.
kelvin::Value value_of(const std::string& text) {
  const auto value = kelvin::Value::parse(text, nullptr, /*allow_exceptions=*/false);
  return value.is_discarded() ? kelvin::Value(text) : value;
}

int run(const std::vector<std::string>& words) {
  if (words.size() < 5 || (words[0] == "features" && words.size() != 6)) {
    std::cerr << "usage: kelvin_probe_speed probe DATA TRAIN TEST FOLDER [SETTING=VALUE...]\n"
                 "       kelvin_probe_speed features DATA TRAIN TEST LAYER FOLDER\n";
    return 2;
  }
  const auto shown = network(words[1], std::stoll(words[2]), std::stoll(words[3]));
  if (words[0] == "features") {
    write_features(shown, words[4], words[5]);
    return 0;
  }
  kelvin::Values values;
  for (size_t i = 5; i < words.size(); ++i) {
    const auto equals = words[i].find('=');
    kelvin::check(equals != std::string::npos, words[i], ": must be SETTING=VALUE");
    values[words[i].substr(0, equals)] = value_of(words[i].substr(equals + 1));
  }
  probe(shown, words[4], values);
  return 0;
}

}  // namespace

int main(int count, char** arguments) { return kelvin::run_as_tool(count, arguments, run); }
