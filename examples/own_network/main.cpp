// Trains a torch::nn::Module of your own at two temperatures, and measures it with kelvin.

#include <torch/torch.h>

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <set>
#include <string>

#include "kelvin/experiment/evaluate/evaluation.h"
#include "kelvin/ops/cross_entropy.h"

constexpr int64_t kClasses = 20;
constexpr int64_t kInputs = 40;

// LibTorch's modules have no forward hooks, so this one writes down itself what a measure looks at.
struct NetworkImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& inputs, kelvin::Record* record = nullptr) {
    const auto hidden = first->forward(inputs);
    const auto features = torch::relu(hidden);
    const auto logits = last->forward(features);
    if (record != nullptr) {
      record->logits = logits;
      record->features = features;
      record->weight = last->weight;
      record->bias = last->bias;
      record->layers = {{.name = "first",
                         .weight = first->weight,
                         .bias = first->bias,
                         .input = inputs,
                         .pre_activation = hidden,
                         .output = features},
                        {.name = "last",
                         .weight = last->weight,
                         .bias = last->bias,
                         .input = features,
                         .pre_activation = logits,
                         .output = logits}};
    }
    return logits;
  }

  torch::nn::Linear first = register_module("first", torch::nn::Linear(kInputs, 128));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(128, kClasses));
};
TORCH_MODULE(Network);

struct Samples {
  torch::Tensor inputs;
  torch::Tensor labels;
};

Samples drawn(int64_t count, const torch::Tensor& centres) {
  const auto labels = torch::arange(count) % kClasses;
  return {.inputs = centres.index_select(0, labels) + 0.3 * torch::randn({count, kInputs}),
          .labels = labels};
}

void train(Network& network, const Samples& samples, double temperature) {
  torch::optim::SGD optimizer(network->parameters(), 0.1 * temperature);
  for (int step = 0; step < 300; ++step) {
    optimizer.zero_grad();
    const auto logits = network->forward(samples.inputs);
    kelvin::tempered_cross_entropy(logits, samples.labels, torch::tensor(temperature))
        .loss.backward();
    optimizer.step();
  }
}

// Shows the measures what the network does with test samples, as often as they ask for it.
class NetworkRecords : public kelvin::RecordSource {
 public:
  NetworkRecords(const Network& network, const Samples& test) : network_(network), test_(test) {}

  bool has_train(const std::optional<size_t>& /*ood*/) const override { return false; }

  void show(const kelvin::Pass& pass, const Consume& consume) override {
    const torch::NoGradGuard no_gradients;
    const auto total = test_.labels.size(0);
    const auto order = pass.sample > 0 ? torch::randperm(total) : torch::arange(total);
    const auto shown = pass.sample > 0 ? std::min(pass.sample, total) : total;
    for (int64_t first = 0; first < shown; first += 500) {
      const auto batch = order.slice(0, first, std::min(first + 500, shown));
      kelvin::Record record{.classes = kClasses};
      network_->forward(test_.inputs.index_select(0, batch), &record);
      record.labels = test_.labels.index_select(0, batch);
      consume(record);
    }
  }

 private:
  Network network_;
  Samples test_;
};

kelvin::Readings measured(const Network& network, const Samples& test, double temperature) {
  const kelvin::MeasureContext context{.temperature = temperature,
                                       .test_samples = test.labels.size(0)};
  kelvin::MeasureSet measures;
  for (const std::string name : {"accuracy", "solution_rank", "layer_spectrum"}) {
    kelvin::Settings settings("measure." + name, {});
    measures.add(name, kelvin::measures().find(name).make(context, settings));
  }
  NetworkRecords records(network, test);
  kelvin::Detection no_detectors;
  kelvin::show_all(records, measures, no_detectors, {});
  return measures.compute();
}

int main() {
  torch::manual_seed(0);
  const auto centres = torch::randn({kClasses, kInputs});
  const auto known = drawn(2000, centres);
  const auto test = drawn(2000, centres);
  for (const double temperature : {1.0, 100.0}) {
    Network network;
    train(network, known, temperature);
    // Of several readings of one name the first has the default definition; `definition` tells it.
    std::set<std::string> seen;
    for (const auto& reading : measured(network, test, temperature)) {
      const auto name = reading.name + (reading.layer.empty() ? "" : " of " + reading.layer);
      if (reading.index || !seen.insert(name).second) continue;
      std::cout << "T = " << std::setw(3) << temperature << "  " << std::left << std::setw(32)
                << name << std::right << std::setprecision(4) << reading.value << "\n";
    }
  }
}
