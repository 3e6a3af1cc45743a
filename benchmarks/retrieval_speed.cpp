// One side of retrieval_speed.py: training steps of the network for max retrieval on sets that
// both sides have.

#include <torch/torch.h>

#include <chrono>
#include <ctime>
#include <iostream>

#include "benchmarks/tool_process.h"
#include "kelvin/experiment/retrieval/retrieval_settings.h"
#include "kelvin/experiment/run/run_store.h"
#include "kelvin/formats/npz_file.h"

namespace {

using namespace kelvin;

constexpr int64_t kBatches = 32;

// Writes what the other side needs into the file that is named, then reads numbers of steps from
// stdin and answers each with the seconds they took, those of the processor, and the losses.
int run(const std::vector<std::string>& words) {
  const auto settings = RetrievalSettings::from({});
  const auto network = settings.network();
  std::vector<RetrievalSets> batches;
  Arrays arrays;
  for (const auto& [name, tensor] : network.parameters()) {
    arrays["weights/" + name] = array_of(tensor.detach());
  }
  for (int64_t i = 0; i < kBatches; ++i) {
    batches.push_back(draw_sets({}, static_cast<uint64_t>(i)));
    const auto& sets = batches.back();
    const auto place = "/" + std::to_string(i);
    arrays["priorities" + place] = array_of(sets.priorities);
    arrays["classes" + place] = array_of(sets.classes);
    arrays["queries" + place] = array_of(sets.queries);
    arrays["sizes" + place] = array_of(sets.sizes);
    arrays["labels" + place] = array_of(sets.labels);
  }
  write_npz(words.at(0), arrays);
  RetrievalTrainer trainer(network, settings.map, settings.training, 0);
  std::cout << "ready" << std::endl;
  int64_t steps = 0;
  size_t at = 0;
  while (std::cin >> steps && steps > 0) {
    std::vector<double> losses;
    const auto began = std::chrono::steady_clock::now();
    const auto cpu_began = std::clock();
    for (int64_t i = 0; i < steps; ++i, ++at) {
      losses.push_back(trainer.step(batches[at % batches.size()]).loss);
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - began;
    std::cout.precision(9);
    const auto cpu = static_cast<double>(std::clock() - cpu_began) / CLOCKS_PER_SEC;
    std::cout << taken.count() << ' ' << cpu;
    for (const double loss : losses) std::cout << ' ' << loss;
    std::cout << std::endl;
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) { return kelvin::run_as_tool(count, arguments, run); }
