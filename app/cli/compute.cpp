#include "app/cli/compute.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "app/cli/common_flags.h"
#include "app/cli/human_text.h"
#include "app/cli/interrupts.h"
#include "app/cli/machine.h"
#include "app/cli/run_context.h"
#include "app/cli/version.h"
#include "kelvin/core/check.h"
#include "kelvin/core/text.h"

namespace kelvin {

namespace fs = std::filesystem;

fs::path executable_path() {
  std::error_code failure;
  auto path = fs::read_symlink("/proc/self/exe", failure);
  check(!failure, "/proc/self/exe: cannot read: ", failure.message());
  return path;
}

fs::path installed_file(const std::string& name, const std::vector<std::string>& places) {
  const auto folder = executable_path().parent_path();
  for (const auto& place : places) {
    auto path = (folder / place / name).lexically_normal();
    if (fs::is_regular_file(path)) return path;
  }
  check(false, name, ": not found beside ", folder.string(),
        "; build it with 'make build' or install kelvin again");
  return {};
}

ComputeLibrary load_compute_library(int64_t threads) {
  const auto path = installed_file(
      kLibraryFile,
      {".", "../lib", "../lib64", "../lib/x86_64-linux-gnu", "../lib/aarch64-linux-gnu"});
  prepare_process(threads);
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  check(library != nullptr, path.string(), ": cannot be loaded: ", library ? "" : ::dlerror());
  const auto door = reinterpret_cast<ComputeLibrary::Door>(::dlsym(library, "kelvin_run_task"));
  check(door != nullptr, path.string(), ": is not kelvin's library (no kelvin_run_task)");
  const ComputeLibrary loaded(door);
  loaded.run(ThreadsRequest{.threads = threads});
  return loaded;
}

int compute(const std::string& verb, const CommonFlags& flags,
            const std::function<void(const ComputeLibrary&, const RunContext&)>& work,
            const std::function<void()>& on_failure) {
  const auto compute_library = load_compute_library(flags.threads());
  try {
    const BriefInterrupts interruptible;
    ProgressBar bar(flags.is_quiet());
    auto context = run_context(bar);
    context.data_folder = flags.data_folder();
    work(compute_library, context);
  } catch (const Error& error) {
    on_failure();
    if (interrupts() == 0) throw;
    print_for_people(fmt::format("kelvin {}: {}\n", verb, shown_line(error.what())));
    return interrupt_exit_code();
  } catch (...) {
    on_failure();
    throw;
  }
  return kSuccess;
}

}  // namespace kelvin
