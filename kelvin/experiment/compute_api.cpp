#include "kelvin/experiment/compute_api.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/torch.h>

#include <algorithm>
#include <stdexcept>

#include "kelvin/core/check.h"
#include "kelvin/data/batches.h"
#include "kelvin/experiment/measure_dump.h"
#include "kelvin/experiment/run.h"
#include "kelvin/experiment/run_settings.h"
#include "kelvin/experiment/sample_images.h"

namespace kelvin {
namespace {

using Json = nlohmann::ordered_json;

Config resolve(const Config& config) { return RunSettings::from(config).resolved; }

Json plan(const Config& resolved, const RunContext& context) {
  torch::NoGradGuard no_grad;
  const auto settings = RunSettings::from(resolved);
  auto request = settings.request;
  const auto shape = dataset_facts(settings.dataset, request).shape;
  // As many pixels as 256 images of CIFAR have: larger ones would take minutes and all memory.
  constexpr int64_t kPixels = int64_t{256} * 32 * 32;
  request.train_samples = std::clamp<int64_t>(kPixels / (shape.height * shape.width), 8, 256);
  request.test_samples = 1;
  request.data_folder = context.data_folder;
  const auto sample = load_dataset(settings.dataset, request);
  check_trainable(settings, sample);
  const auto model = settings.build_model(shape_for(sample));
  model->eval();
  const BatchMaker batches(sample.mean, sample.deviation);
  const auto batch = batches.make(sample.train, fixed_sample(0, 256, sample.train.size()));
  Taps taps;
  const auto logits = model->forward(batch.images, &taps);
  const double samples = static_cast<double>(batch.labels.size(0));
  const double norm = logits.to(torch::kFloat64).norm().item<double>() / std::sqrt(samples);
  const auto macs = taps.macs() / batch.labels.size(0);
  return {{"parameters", parameter_count(*model)},
          {"weight_layers", taps.layers().size()},
          {"macs_per_image", macs},
          {"training_gflop_per_1000_images", 6e-6 * static_cast<double>(macs)},
          {"initial_logits_norm_per_sample", norm},
          {"initial_logits_norm_per_sample_over_t", norm / settings.train.temperature}};
}

// What follows `key` in LibTorch's long description of itself.  LibTorch 1.13 has no other way.
std::string described(const std::string& key) {
  const auto description = at::show_config();
  const auto begin = description.find(key);
  if (begin == std::string::npos) return "unknown";
  const auto end = description.find_first_of(", \n", begin + key.size());
  return description.substr(begin + key.size(), end - begin - key.size());
}

Json versions() {
  return {{"torch", TORCH_VERSION},
          {"blas", described("BLAS_INFO=")},
          {"cpu_capability", described("CPU capability usage: ")},
          {"threads", at::get_num_threads()}};
}

// What LibTorch throws, without its backtrace; a request that memory cannot hold is the user's to
// mend.
template <class Action>
auto translated(const Action& action) {
  try {
    return action();
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    check(message.find("DefaultCPUAllocator") == std::string::npos, "not enough memory: ", message);
    throw std::runtime_error(message);
  }
}

void set_threads(int64_t threads) { at::set_num_threads(static_cast<int>(threads)); }

const ComputeApi kApi = {
    .resolve = [](const Config& config) { return translated([&] { return resolve(config); }); },
    .plan =
        [](const Config& resolved, const RunContext& context) {
          return translated([&] { return plan(resolved, context); });
        },
    .train =
        [](const Config& resolved, const std::filesystem::path& output, const Json& metadata,
           const RunContext& context) {
          translated([&] { run(resolved, output, metadata, context); });
        },
    .measure_run =
        [](const std::filesystem::path& path, const std::vector<std::string>& measures,
           const RunContext& context) {
          return translated([&] { return measure_run(path, measures, context); });
        },
    .measure_dump =
        [](const std::filesystem::path& npz, const std::vector<std::string>& measures,
           const RunContext&) { return translated([&] { return measure_dump(npz, measures); }); },
    .sample_images =
        [](const Config& config, int64_t count, bool of_training, const RunContext& context) {
          return translated([&] { return sample_images(config, count, of_training, context); });
        },
    .versions = versions,
    .set_threads = set_threads};

}  // namespace
}  // namespace kelvin

const kelvin::ComputeApi* kelvin_compute_api() { return &kelvin::kApi; }
