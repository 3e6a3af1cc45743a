#include "app/compute_library.h"

#include <dlfcn.h>

#include "app/installation.h"
#include "app/machine.h"
#include "kelvin/core/check.h"

namespace kelvin {

const ComputeApi& load_compute_library(int64_t threads) {
  const auto path = installed_file(
      "libkelvin.so",
      {".", "../lib", "../lib64", "../lib/x86_64-linux-gnu", "../lib/aarch64-linux-gnu"});
  prepare_process(threads);
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  check(library != nullptr, path.string(), ": cannot be loaded: ", library ? "" : ::dlerror());
  using ApiFunction = const ComputeApi* (*)();
  const auto api = reinterpret_cast<ApiFunction>(::dlsym(library, "kelvin_compute_api"));
  check(api != nullptr, path.string(), ": is not kelvin's library (no kelvin_compute_api)");
  api()->set_threads(threads);
  return *api();
}

}  // namespace kelvin
