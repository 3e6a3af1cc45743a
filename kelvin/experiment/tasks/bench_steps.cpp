#include "kelvin/experiment/tasks/bench_steps.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <algorithm>
#include <limits>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/data/batches.h"
#include "kelvin/data/dataset.h"
#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/experiment/evaluate/trained_network.h"
#include "kelvin/model/description.h"
#include "kelvin/model/precision.h"
#include "kelvin/model/tensors_file.h"
#include "kelvin/model/weights.h"

namespace kelvin {
namespace {

// Takes as many steps as it is told to, and is asked for more when they are done.
class StepCounter : public TrainObserver {
 public:
  StepCounter(const StepBenchRequest& request, const RunContext& context)
      : request_(request), context_(context) {
    ask();
  }

  void before_training(const TrainState&) override { start_ = context_.seconds(); }

  void after_step(const TrainState& state) override {
    steps_.losses.push_back(state.loss);
    steps_.data += state.seconds.data;
    steps_.forward += state.seconds.forward;
    steps_.backward += state.seconds.backward;
    steps_.optimizer += state.seconds.optimizer;
    if (static_cast<int64_t>(steps_.losses.size()) < wanted_) return;
    steps_.seconds = context_.seconds() - start_;
    request_.on_steps(steps_);
    ask();
    start_ = context_.seconds();
  }

  bool is_done() const { return wanted_ == 0; }

 private:
  void ask() {
    wanted_ = request_.next_count();
    check(wanted_ >= 0, "bench: steps must be at least 0, got ", wanted_);
    steps_ = {};
  }

  const StepBenchRequest& request_;
  const RunContext& context_;
  int64_t wanted_ = 0;
  double start_ = 0;
  TimedSteps steps_;
};

// What the first epoch shows first, in order.
void write_start(const std::filesystem::path& path, const Model& model, const Dataset& dataset,
                 const TrainOptions& options) {
  auto order = epoch_order(derive_seed(options.seed, "order"), 0, dataset.train.size());
  order.resize(static_cast<size_t>(kSharedBatches * options.batch_size));
  const auto first = torch::tensor(order);
  NamedTensors tensors = {{"images", dataset.train.pixels.index_select(0, first)},
                          {"labels", dataset.train.labels.index_select(0, first)}};
  for (const auto& [name, tensor] : weights_of(model)) tensors["weights/" + name] = tensor;
  write_safetensors(path, tensors);
}

void check_settings(const RunSettings& settings) {
  check(settings.device == "cpu", "device: a bench runs on the cpu, got '", settings.device, "'");
  constexpr int64_t kMostImages = 65536;
  check(settings.train.batch_size <= kMostImages / kBenchBatches,
        "train.batch_size: must be at most ", kMostImages / kBenchBatches, " in a bench, got ",
        settings.train.batch_size);
  check(settings.train.augmentation != Augmentation::resized_crop_flip,
        "data.augment: resized-crop-flip is for pictures on disk; a bench has none");
}

}  // namespace

Dataset bench_dataset(const RunSettings& settings) {
  const auto facts = dataset_facts(settings.dataset, settings.request);
  const auto samples = kBenchBatches * settings.train.batch_size;
  // A generator of its own: that of the process draws the weights.
  auto generator =
      at::detail::createCPUGenerator(derive_seed(static_cast<uint64_t>(settings.seed), "bench"));
  const std::vector<int64_t> sizes = {samples, facts.shape.channels, facts.shape.height,
                                      facts.shape.width};
  Dataset dataset;
  dataset.name = "random";
  dataset.classes = facts.classes;
  dataset.train.pixels = torch::randint(0, 256, sizes, generator, torch::kUInt8);
  dataset.train.labels = torch::randint(0, facts.classes, {samples}, generator, torch::kInt64);
  dataset.test = dataset.train;
  return dataset;
}

void bench_steps(const StepBenchRequest& request, const RunContext& context) {
  const auto settings = RunSettings::from(request.settings);
  check_settings(settings);
  const auto dataset = bench_dataset(settings);
  const auto model = prepared_model(settings, dataset);
  if (!request.start.empty()) write_start(request.start, *model, dataset, settings.train);
  const auto description = describe(*model, shape_for(settings, dataset));
  request.on_start({.settings = settings.resolved.values(),
                    .parameters = description.parameters,
                    .macs = description.macs});
  auto options = settings.train;
  options.epochs = std::numeric_limits<int32_t>::max();  // more than anybody waits for
  options.seconds = context.seconds;
  StepCounter counter(request, context);
  if (counter.is_done()) return;
  train(*model, dataset, options, {&counter},
        [&] { return counter.is_done() || context.should_stop(); });
}

namespace {

constexpr int64_t kSide = 2048;  // large enough for any BLAS, small enough for any memory
constexpr int kProducts = 8;     // the first of them prepares threads and buffers

}  // namespace

PeakGemm peak_gemm(Precision precision, const RunContext& context) {
  torch::NoGradGuard no_grad;
  const bool is_native = precision == Precision::bf16 && multiplies_bfloat16(torch::kCPU);
  const auto type = is_native ? torch::kBFloat16 : torch::kFloat32;
  // Any numbers will do but zeros, which some machines multiply with less power.
  const auto left = torch::linspace(-1, 1, kSide * kSide).view({kSide, kSide}).to(type);
  auto result = torch::empty({kSide, kSide}, type);
  double fastest = 0;
  for (int i = 0; i < kProducts; ++i) {
    const double start = context.seconds();
    torch::mm_out(result, left, left);
    const double seconds = context.seconds() - start;
    check(seconds > 0, "peak_gemm: needs a clock that goes on, a product took ", seconds, " s");
    if (fastest == 0 || seconds < fastest) fastest = seconds;
  }
  return {.gflops = 2e-9 * static_cast<double>(kSide * kSide * kSide) / fastest,
          .precision = is_native ? "bf16" : "fp32"};
}

namespace {

PeakGemm peak_gemm_task(const PeakGemmRequest& request, const RunContext& context) {
  return peak_gemm(precision_of(request.precision), context);
}

const bool bench_steps_registered = add_task(bench_steps) && add_task(peak_gemm_task);

}  // namespace
}  // namespace kelvin
