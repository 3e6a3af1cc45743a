#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <stdexcept>

#include "kelvin/ops/cross_entropy.h"

// What a step of training pays for its loss, forwards and backwards: ours beside LibTorch's with
// the same outputs and beside LibTorch's bare loss.  Run with
// --benchmark_enable_random_interleaving=true.

namespace kelvin {
namespace {

constexpr double kTemperature = 10;

struct Batch {
  torch::Tensor logits;
  torch::Tensor labels;
  torch::Tensor temperature = torch::tensor(kTemperature);
};

Batch some_batch(const benchmark::State& state) {
  torch::manual_seed(0);
  return {.logits = (5 * torch::randn({state.range(0), state.range(1)})).requires_grad_(),
          .labels = torch::randint(state.range(1), {state.range(0)}, torch::kInt64)};
}

torch::Tensor bare(const Batch& batch) {
  return torch::nn::functional::cross_entropy(batch.logits / kTemperature, batch.labels);
}

LossValues composed(const Batch& batch) {
  const auto logs = torch::log_softmax(batch.logits / kTemperature, 1);
  const auto losses = torch::nll_loss(logs, batch.labels, {}, at::Reduction::None);
  const auto detached = logs.detach();
  return {.loss = losses.mean(),
          .sample_losses = losses.detach(),
          .entropies = -(detached.exp() * detached).sum(1),
          .predictions = batch.logits.detach().argmax(1)};
}

LossValues fused(const Batch& batch) {
  return tempered_cross_entropy(batch.logits, batch.labels, batch.temperature);
}

torch::Tensor gradient_of(const Batch& batch, const torch::Tensor& loss) {
  return torch::autograd::grad({loss}, {batch.logits}).front();
}

// Whoever computes something else is not faster.
void check_agreement(const Batch& batch) {
  const auto ours = fused(batch);
  const auto theirs = composed(batch);
  const auto agree = [](const torch::Tensor& one, const torch::Tensor& other) {
    return torch::allclose(one, other, 1e-5, 1e-7);
  };
  const auto gradient = gradient_of(batch, ours.loss);
  const auto plain = bare(batch);
  if (!agree(ours.loss, theirs.loss) || !agree(ours.loss, plain) ||
      !agree(ours.sample_losses, theirs.sample_losses) ||
      !agree(ours.entropies, theirs.entropies) || !ours.predictions.equal(theirs.predictions) ||
      !agree(gradient, gradient_of(batch, theirs.loss)) ||
      !agree(gradient, gradient_of(batch, plain))) {
    throw std::runtime_error("the losses differ");
  }
}

void cross_entropy_of_kelvin(benchmark::State& state) {
  const auto batch = some_batch(state);
  check_agreement(batch);
  for (auto iteration : state) {
    const auto values = fused(batch);
    benchmark::DoNotOptimize(gradient_of(batch, values.loss));
  }
}

void cross_entropy_of_torch_with_all_outputs(benchmark::State& state) {
  const auto batch = some_batch(state);
  for (auto iteration : state) {
    const auto values = composed(batch);
    benchmark::DoNotOptimize(gradient_of(batch, values.loss));
  }
}

void cross_entropy_of_torch_alone(benchmark::State& state) {
  const auto batch = some_batch(state);
  for (auto iteration : state) benchmark::DoNotOptimize(gradient_of(batch, bare(batch)));
}

void shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Args({128, 10})->Args({128, 100})->Args({128, 1000})->Args({1024, 1000});
  benchmark->Unit(benchmark::kMicrosecond);
}

BENCHMARK(cross_entropy_of_kelvin)->Apply(shapes);
BENCHMARK(cross_entropy_of_torch_with_all_outputs)->Apply(shapes);
BENCHMARK(cross_entropy_of_torch_alone)->Apply(shapes);

}  // namespace
}  // namespace kelvin
