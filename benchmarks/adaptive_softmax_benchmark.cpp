#include <benchmark/benchmark.h>
#include <malloc.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "kelvin/kernels/row_vectors.h"
#include "kelvin/ops/adaptive_softmax.h"

// Adaptive softmax beside LibTorch's plain softmax and beside its composition of LibTorch's
// operators, on tensors of so many MiB.  Each iteration computes all of them in turn, each once
// before it is timed so that none finds the caches as another left them.  Other work on the machine
// slows all, so the counters to look at are medians of ratios.
//   of_softmax   ours over torch::softmax
//   composition  the composition over ours

namespace kelvin {
namespace {

using Seconds = std::chrono::duration<double>;

// As the tool does before it computes: LibTorch uses the widest vectors, which on some processors
// it has to be told, and freed memory stays with the process.
bool prepared() {
  if (widest_instruction_set() == InstructionSet::avx512) {
    setenv("ATEN_CPU_CAPABILITY", "avx512", /*overwrite=*/0);
  }
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  return true;
}
const bool kIsPrepared = prepared();

// As published, line by line.
torch::Tensor composed(const torch::Tensor& logits) {
  const auto probabilities = torch::softmax(logits, -1);
  const auto entropies = -(probabilities * (probabilities + 1e-9).log()).sum(-1, true);
  auto betas = torch::full_like(entropies, -0.037);
  for (const double next : {0.481, -2.3, 4.917, -1.791}) betas = betas * entropies + next;
  betas = torch::where(entropies > 0.5, betas.clamp_min(1), torch::ones_like(betas));
  return torch::softmax(logits * betas, -1);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <class Function>
double seconds_of(const Function& function) {
  benchmark::DoNotOptimize(function());
  const auto start = std::chrono::steady_clock::now();
  benchmark::DoNotOptimize(function());
  return Seconds(std::chrono::steady_clock::now() - start).count();
}

// Rows most of which are sharpened: what is left as it is would cost less.
torch::Tensor some_logits(const benchmark::State& state) {
  torch::manual_seed(0);
  const auto columns = state.range(0);
  const auto rows = (state.range(1) << 20) / columns / 4;
  const double deviation = columns <= 256 ? 1 : 4;
  auto logits = deviation * torch::randn({rows, columns});
  const auto betas = adaptive_softmax_values(logits).betas;
  if ((betas > 1).to(torch::kFloat64).mean().item<double>() < 0.9) {
    throw std::runtime_error("too few rows have a beta above 1");
  }
  return logits;
}

void adaptive_softmax_forward(benchmark::State& state) {
  const auto type = state.range(2) != 0 ? torch::kBFloat16 : torch::kFloat32;
  const auto logits = some_logits(state).to(type);
  if (!torch::allclose(adaptive_softmax(logits).to(torch::kFloat32),
                       composed(logits.to(torch::kFloat32)), 1e-2, 1e-5)) {
    throw std::runtime_error("the results differ");
  }
  const torch::NoGradGuard no_grad;
  std::vector<double> ours, plain, parts, of_softmax, composition;
  for (auto iteration : state) {
    ours.push_back(seconds_of([&] { return adaptive_softmax(logits); }));
    plain.push_back(seconds_of([&] { return torch::softmax(logits, -1); }));
    parts.push_back(seconds_of([&] { return composed(logits); }));
    of_softmax.push_back(ours.back() / plain.back());
    composition.push_back(parts.back() / ours.back());
  }
  state.counters = {{"ours_ms", 1e3 * median(ours)},
                    {"softmax_ms", 1e3 * median(plain)},
                    {"composed_ms", 1e3 * median(parts)},
                    {"of_softmax", median(of_softmax)},
                    {"composition", median(composition)}};
}

void adaptive_softmax_backward(benchmark::State& state) {
  const auto logits = some_logits(state).set_requires_grad(true);
  const auto incoming = torch::randn_like(logits);
  const auto gradient = [&](const torch::Tensor& result) {
    return torch::autograd::grad({result}, {logits}, {incoming}).front();
  };
  if (!torch::allclose(gradient(adaptive_softmax(logits)), gradient(composed(logits)), 1e-3,
                       1e-5)) {
    throw std::runtime_error("the gradients differ");
  }
  std::vector<double> of_softmax, composition;
  for (auto iteration : state) {
    const double ours = seconds_of([&] { return gradient(adaptive_softmax(logits)); });
    of_softmax.push_back(ours / seconds_of([&] { return gradient(torch::softmax(logits, -1)); }));
    composition.push_back(seconds_of([&] { return gradient(composed(logits)); }) / ours);
  }
  state.counters = {{"of_softmax", median(of_softmax)}, {"composition", median(composition)}};
}

// Columns, MiB of float32, whether in bfloat16.
void rows_and_bytes(benchmark::internal::Benchmark* benchmark) {
  for (const int64_t size : {4, 256}) {
    for (const int64_t columns : {16, 256, 4096, 16384}) benchmark->Args({columns, size, 0});
  }
  benchmark->Unit(benchmark::kMillisecond);
}
void narrow_shapes(benchmark::internal::Benchmark* benchmark) {
  for (const int64_t columns : {16, 256, 4096, 16384}) benchmark->Args({columns, 4, 1});
  benchmark->Unit(benchmark::kMillisecond);
}

BENCHMARK(adaptive_softmax_forward)->Apply(rows_and_bytes)->Apply(narrow_shapes);
BENCHMARK(adaptive_softmax_backward)->Args({16, 4, 0})->Args({256, 4, 0})->Args({4096, 4, 0});

}  // namespace
}  // namespace kelvin
