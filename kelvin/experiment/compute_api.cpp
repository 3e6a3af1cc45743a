#include "kelvin/experiment/compute_api.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <torch/torch.h>

#include <stdexcept>

#include "kelvin/core/check.h"
#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/experiment/evaluate/detect_in_dumps.h"
#include "kelvin/experiment/evaluate/measure_dump.h"
#include "kelvin/experiment/run/run.h"
#include "kelvin/experiment/tasks/bench_steps.h"
#include "kelvin/experiment/tasks/calibrate.h"
#include "kelvin/experiment/tasks/plan.h"
#include "kelvin/experiment/tasks/sample_images.h"
#include "kelvin/experiment/tasks/truncate.h"
#include "kelvin/model/description.h"

namespace kelvin {
namespace {

using Json = nlohmann::ordered_json;

Config resolve(const Config& config) { return RunSettings::from(config).resolved; }

// The layers of a model, without any data.
Json describe_model(const Config& config, const std::vector<int64_t>& shape, int64_t classes) {
  auto settings = config.section("model");
  std::string name;
  settings.read("name", name);
  check(shape.size() == 3, "--input: must be channels, height and width, got ", shape.size(),
        " numbers");
  for (const auto size : shape) {
    check(size >= 1 && size <= 1024, "--input: sizes must be from 1 to 1024, got ", size);
  }
  check(classes >= 1 && classes <= 1'000'000, "--classes: must be from 1 to 1000000, got ",
        classes);
  const ModelShape model_shape{
      .channels = shape[0], .height = shape[1], .width = shape[2], .classes = classes};
  const auto model = models().find(name).build(model_shape, settings);
  settings.reject_unknown_keys();
  config.reject_unknown_sections({"model"});
  const auto description = describe(*model, model_shape);
  auto layers = Json::array();
  for (const auto& layer : description.layers) {
    layers.push_back({{"name", layer.name},
                      {"weight", layer.weight},
                      {"input", layer.input},
                      {"output", layer.output},
                      {"parameters", layer.parameters},
                      {"macs", layer.macs}});
  }
  return {{"model", name},
          {"settings", settings.resolved()},
          {"parameters", description.parameters},
          {"macs", description.macs},
          {"layers", layers}};
}

// What follows `key` in LibTorch's long description of itself.  LibTorch 1.13 has no other way.
std::string described(const std::string& key) {
  const auto description = at::show_config();
  const auto begin = description.find(key);
  if (begin == std::string::npos) return "unknown";
  const auto end = description.find_first_of(", \n", begin + key.size());
  return description.substr(begin + key.size(), end - begin - key.size());
}

// The file that matrix products come from: on Debian one BLAS replaces another without a rebuild.
std::string blas_library() {
  void* const product = ::dlsym(RTLD_DEFAULT, "sgemm_");
  Dl_info found{};
  if (product == nullptr || ::dladdr(product, &found) == 0) return "unknown";
  std::error_code unresolved;
  const auto path = std::filesystem::canonical(found.dli_fname, unresolved);
  return unresolved ? found.dli_fname : path.string();
}

Json versions() {
  return {{"torch", TORCH_VERSION},
          {"blas", described("BLAS_INFO=")},
          {"blas_library", blas_library()},
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
    .resume =
        [](const std::filesystem::path& path, const Json& metadata, bool is_inexact,
           const RunContext& context) {
          translated([&] { resume(path, metadata, is_inexact, context); });
        },
    .measure_run =
        [](const std::filesystem::path& path, const MeasureRequest& request,
           const RunContext& context) {
          return translated([&] { return measure_run(path, request, context); });
        },
    .measure_weights =
        [](const MeasureRequest& request, const RunContext& context) {
          return translated([&] { return measure_weights(request, context); });
        },
    .measure_dump =
        [](const std::filesystem::path& npz, const MeasureRequest& request,
           const RunContext& context) {
          return translated([&] { return measure_dump(npz, request, context); });
        },
    .detect_in_dumps =
        [](const DetectRequest& request, const RunContext& context) {
          return translated([&] { return detect_in_dumps(request, context); });
        },
    .calibrate =
        [](const CalibrateRequest& request, const RunContext& context) {
          return translated([&] { return calibrate(request, context); });
        },
    .truncate_run =
        [](const std::filesystem::path& path, const TruncateRequest& request,
           const RunContext& context) {
          return translated([&] { return truncate(path, request, context); });
        },
    .sample_images =
        [](const Config& config, int64_t count, bool of_training, const RunContext& context) {
          return translated([&] { return sample_images(config, count, of_training, context); });
        },
    .describe_model =
        [](const Config& config, const std::vector<int64_t>& shape, int64_t classes) {
          return translated([&] { return describe_model(config, shape, classes); });
        },
    .initial_norms =
        [](const Config& config, const std::vector<int64_t>& seeds, int64_t samples,
           const RunContext& context) {
          return translated([&] { return initial_norms(config, seeds, samples, context); });
        },
    .bench_steps =
        [](const StepBenchRequest& request, const RunContext& context) {
          translated([&] { bench_steps(request, context); });
        },
    .peak_gemm =
        [](const std::string& precision, const RunContext& context) {
          return translated([&] { return peak_gemm(precision_of(precision), context); });
        },
    .versions = versions,
    .set_threads = set_threads};

}  // namespace
}  // namespace kelvin

const kelvin::ComputeApi* kelvin_compute_api() { return &kelvin::kApi; }
