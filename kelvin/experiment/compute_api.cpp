#include "kelvin/experiment/compute_api.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <torch/torch.h>

#include <stdexcept>

#include "kelvin/core/check.h"
#include "kelvin/experiment/config/run_settings.h"

namespace kelvin {
namespace {

using Json = nlohmann::ordered_json;

Config resolve(const ResolveRequest& request, const RunContext& /*context*/) {
  return RunSettings::from(request.config).resolved;
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

// The processor whose kernels OpenBLAS chose when it was loaded, which OPENBLAS_CORETYPE may do for
// it: others round otherwise.  Empty for another BLAS.
std::string blas_kernels() {
  using Name = const char* (*)();
  const auto name = reinterpret_cast<Name>(::dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  return name == nullptr ? "" : name();
}

Json versions(const VersionsRequest& /*request*/, const RunContext& /*context*/) {
  return {{"torch", TORCH_VERSION},
          {"blas", described("BLAS_INFO=")},
          {"blas_library", blas_library()},
          {"blas_kernels", blas_kernels()},
          {"cpu_capability", described("CPU capability usage: ")},
          {"threads", at::get_num_threads()}};
}

void set_threads(const ThreadsRequest& request, const RunContext& /*context*/) {
  at::set_num_threads(static_cast<int>(request.threads));
}

const bool compute_api_registered =
    add_task(resolve) && add_task(versions) && add_task(set_threads);

}  // namespace

Registry<Task>& tasks() {
  static Registry<Task> registry("task");
  return registry;
}

}  // namespace kelvin

void kelvin_run_task(const char* task, const void* request, const kelvin::RunContext& context,
                     void* result) {
  try {
    kelvin::tasks().find(task).run(request, context, result);
  } catch (const c10::Error& error) {
    // Without its backtrace; a request that memory cannot hold is the user's to mend.
    const std::string message = error.what_without_backtrace();
    kelvin::check(message.find("DefaultCPUAllocator") == std::string::npos,
                  "not enough memory: ", message);
    throw std::runtime_error(message);
  }
}
