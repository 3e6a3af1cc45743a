// Measures all layers of a ResNet-18 on CIFAR-10's test images, and beside it, image by image in
// turn, runs the same forward pass without measuring; benchmarks/measure_speed.py runs it.
//   kelvin_measure_speed DATA SAMPLES DUMP.npz|-
// prints seconds of both, of the parts of measuring, and the memory of the accumulators; DUMP
// gets two layers' outputs and the singular values found for them.

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <string>

#include "benchmarks/tool_process.h"
#include "kelvin/data/batches.h"
#include "kelvin/experiment/evaluate/extract.h"
#include "kelvin/experiment/evaluate/measure_set.h"
#include "kelvin/experiment/run/run_store.h"
#include "kelvin/formats/npz_file.h"
#include "kelvin/ops/layer_matrices.h"

namespace {

constexpr int64_t kTurn = 1000;  // images that one side sees before the other does
const std::vector<std::string> kDumped = {"layer3.0.conv1", "layer4.0.conv1"};

class Stopwatch {
 public:
  template <class Action>
  void time(const Action& action) {
    const auto start = std::chrono::steady_clock::now();
    action();
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  double seconds() const { return seconds_; }

 private:
  double seconds_ = 0;
};

kelvin::MeasureSet default_measures(int64_t samples) {
  kelvin::MeasureSet set;
  for (const char* name : {"layer_spectrum", "class_statistics"}) {
    kelvin::Settings settings(std::string("measure.") + name, {});
    set.add(name, kelvin::measures().find(name).make({.test_samples = samples}, settings));
  }
  return set;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) {
    std::cerr << "usage: kelvin_measure_speed DATA SAMPLES DUMP.npz|-\n";
    return 2;
  }
  kelvin::become_tool_process(arguments);
  const auto dataset = kelvin::load_dataset("cifar10", {.data_folder = arguments[1]});
  const auto samples = std::min<int64_t>(std::stoll(arguments[2]), dataset.test.size());
  torch::manual_seed(0);
  kelvin::Settings settings("model", {});
  const auto model = kelvin::models().find("resnet18").build({.classes = 10}, settings);

  const bool is_dumped = std::string(arguments[3]) != "-";
  auto measures = default_measures(samples);
  const auto order = kelvin::shuffled_sample(0, samples, dataset.test.size());
  const auto part = [&](int64_t begin, int64_t end) {
    return std::vector<int64_t>(order.begin() + begin, order.begin() + end);
  };
  kelvin::Arrays dump;
  std::map<std::string, std::vector<torch::Tensor>> outputs;
  Stopwatch forward;
  Stopwatch measured;
  Stopwatch sample;   // of what is measured: the fixed sample, forward passes included
  Stopwatch updates;  // measuring what the stream brings
  Stopwatch spectra;
  const auto pass = [&](bool with_layers, const std::vector<int64_t>& indices,
                        const std::function<void(const kelvin::Record&)>& consume) {
    kelvin::extract(*model, dataset, dataset, {.with_layers = with_layers, .indices = indices},
                    consume);
  };
  pass(false, part(0, std::min<int64_t>(256, samples)), [](const auto&) {});  // warms up
  kelvin::Record example;
  pass(true, part(0, 1), [&](const auto& record) { example = record; });
  const auto bytes = measures.checked_memory(example, samples, int64_t{16} << 30);
  measured.time([&] {
    sample.time([&] {
      pass(true, part(0, std::min(measures.needs().sample, samples)),
           [&](const auto& record) { measures.see_sample(record); });
    });
  });
  for (int64_t begin = 0; begin < samples; begin += kTurn) {
    const auto indices = part(begin, std::min(samples, begin + kTurn));
    forward.time([&] { pass(false, indices, [](const auto&) {}); });
    measured.time([&] {
      pass(true, indices,
           [&](const auto& record) { updates.time([&] { measures.update(record); }); });
    });
    if (!is_dumped) continue;
    pass(true, indices, [&](const auto& record) {
      for (const auto& layer : record.layers) {
        if (std::find(kDumped.begin(), kDumped.end(), layer.name) == kDumped.end()) continue;
        outputs[layer.name].push_back(kelvin::feature_rows(layer.output).contiguous());
      }
    });
  }
  spectra.time([&] {
    while (measures.wants_another_pass()) throw std::runtime_error("a second pass is not timed");
    measures.compute();
  });
  for (const auto& [name, parts] : outputs) {
    dump[name] = kelvin::array_of(torch::cat(parts));
    dump["values/" + name] = kelvin::array_of(measures.curves().at("spectrum/" + name));
  }
  if (is_dumped) kelvin::write_npz(arguments[3], dump);
  std::cout << "samples " << samples << "\nforward " << forward.seconds() << "\nmeasured "
            << measured.seconds() << "\nsample " << sample.seconds() << "\nupdates "
            << updates.seconds() << "\nspectra " << spectra.seconds() << "\nbytes " << bytes
            << "\n";
  return 0;
}
