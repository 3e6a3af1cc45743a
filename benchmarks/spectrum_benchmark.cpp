#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <stdexcept>

#include "kelvin/numerics/spectrum.h"

namespace kelvin {
namespace {

// Logits of 100 classes with a decaying spectrum, as trained networks have.
torch::Tensor logits_of(int64_t samples) {
  torch::manual_seed(0);
  const auto decay = torch::logspace(0, -3, 100, 10, torch::kFloat64);
  return torch::randn({samples, 100}, torch::kFloat64) * decay;
}

torch::Tensor by_gram(const torch::Tensor& logits) {
  GramAccumulator gram(logits.size(1));
  for (const auto& batch : logits.split(256)) gram.update(batch);
  return gram.singular_values();
}

void streamed_gram(benchmark::State& state) {
  const auto logits = logits_of(state.range(0));
  // Compared before it is timed.
  if (!torch::allclose(by_gram(logits), torch::linalg_svdvals(logits), 1e-6, 1e-9)) {
    throw std::runtime_error("the two spectra differ");
  }
  for (auto iteration : state) benchmark::DoNotOptimize(by_gram(logits));
}
BENCHMARK(streamed_gram)->Arg(2000)->Arg(10000)->Unit(benchmark::kMillisecond);

void whole_svd(benchmark::State& state) {
  const auto logits = logits_of(state.range(0));
  for (auto iteration : state) benchmark::DoNotOptimize(torch::linalg_svdvals(logits));
}
BENCHMARK(whole_svd)->Arg(2000)->Arg(10000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kelvin
