#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <stdexcept>
#include <string>

#include "kelvin/ops/reference_ops.h"
#include "kelvin/train/optimizer.h"

// What a step of training pays for moving the weights: one pass over all of them beside
// torch::optim.  Run with --benchmark_enable_random_interleaving=true.

namespace kelvin {
namespace {

// With gradients that are there already: they cost both the same.
class Stepped {
 public:
  Stepped(const std::string& model, const OptimizerOptions& options, bool is_reference)
      : is_reference_(is_reference), model_(built(model)), optimizer_(*model_, options) {
    for (auto& parameter : model_->parameters()) {
      parameter.mutable_grad() = 1e-3 * torch::randn_like(parameter);
    }
  }

  void step() {
    const ReferenceOpsScope path(is_reference_);
    optimizer_.step(kRate);
  }

  const Model& model() const { return *model_; }

 private:
  static constexpr double kRate = 1e-5;  // weights stay about where they are

  static std::shared_ptr<Model> built(const std::string& name) {
    torch::manual_seed(0);
    Settings settings("model", {});
    auto model = models().find(name).build({}, settings);
    torch::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) {
      if (parameter.dim() != 4) continue;
      parameter.set_data(parameter.contiguous(torch::MemoryFormat::ChannelsLast));
    }
    return model;
  }

  bool is_reference_;
  std::shared_ptr<Model> model_;
  Optimizer optimizer_;
};

// Whoever computes something else is not faster.
void check_agreement(const std::string& model, const OptimizerOptions& options) {
  Stepped ours(model, options, false);
  Stepped theirs(model, options, true);
  for (int step = 0; step < 3; ++step) {
    ours.step();
    theirs.step();
  }
  const auto others = theirs.model().named_parameters();
  for (const auto& item : ours.model().named_parameters()) {
    if (!torch::allclose(item.value(), others[item.key()], 1e-5, 1e-7)) {
      throw std::runtime_error("the optimizers differ in " + item.key());
    }
  }
}

void optimizer_step(benchmark::State& state, const std::string& model,
                    const OptimizerOptions& options, bool is_reference) {
  check_agreement(model, options);
  Stepped stepped(model, options, is_reference);
  stepped.step();  // makes what it remembers
  for (auto iteration : state) stepped.step();
}

const bool kRegistered = [] {
  const std::pair<std::string, OptimizerOptions> kinds[] = {
      {"sgd", {}},
      {"sgdw_nesterov", {.kind = OptimizerKind::sgdw, .nesterov = true}},
      {"sgd_clipped", {.clip_norm = 1}},
      {"adam", {.kind = OptimizerKind::adam}},
      {"adamw", {.kind = OptimizerKind::adamw}}};
  for (const auto& model : {"resnet20", "mlp"}) {
    for (const auto& [name, options] : kinds) {
      for (const bool is_reference : {false, true}) {
        const auto title = std::string("optimizer_step/") + model + "/" + name +
                           (is_reference ? "/torch" : "/kelvin");
        benchmark::RegisterBenchmark(title.c_str(), optimizer_step, model, options, is_reference)
            ->Unit(benchmark::kMicrosecond)
            ->UseRealTime();
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace kelvin
