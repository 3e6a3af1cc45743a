#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "kelvin/core/reading.h"
#include "kelvin/core/registry.h"
#include "kelvin/core/text.h"
#include "kelvin/runs/config.h"

// The one door through which a program that must start fast (the tool) asks libkelvin for work,
// after it has loaded it by hand.
//
// A task is a function of a request and a context that registers itself with add_task() in its own
// file.  Its header declares the request: a struct with the name of the task and the type of what
// it returns.  No LibTorch type appears in it, so that including it does not link LibTorch.
//
//   struct TruncateRequest {
//     static constexpr auto kTask = "truncate";
//     using Result = nlohmann::ordered_json;
//     ...
//   };
//   const auto result = library.run(TruncateRequest{.layer = "conv3"}, context);

namespace kelvin {

// How far a piece of work is; sent at most a few times a second.
struct Progress {
  std::string phase;  // "train", "measure", "probe"
  int64_t done = 0;
  int64_t total = 0;
  double images_per_second = 0;
  std::string note = {};  // "loss 3.21, accuracy 18 %"
};

// The outside world as a run sees it: the library itself reads no clock and prints nothing.
struct RunContext {
  std::function<void(const Progress&)> report_progress = [](const Progress&) {};
  std::function<double()> seconds = [] { return 0.0; };  // monotonic
  std::function<bool()> should_stop = [] { return false; };
  std::function<double()> time_of_day = [] { return 0.0; };          // UNIX seconds
  std::function<int64_t()> peak_memory = [] { return int64_t{0}; };  // bytes of this process
  std::function<void(const std::string&)> warn = [](const std::string&) {};
  std::function<void(const std::string&)> inform = [](const std::string&) {};
  std::filesystem::path data_folder = {};  // where datasets lie
  std::string process_name = "kelvin";     // unlike that of any other process

  // "WHO at most 3 GiB of the 4 GiB allowed", unless it is less than a tenth, which is no news.
  void inform_of_memory(const std::string& who, int64_t bytes, int64_t limit) const {
    if (bytes < limit / 10) return;
    inform(who + " at most " + byte_text(bytes) + " of the " + byte_text(limit) + " allowed");
  }
};

// Told of what was computed before it is stored or written anywhere: a full disk must not cost it.
using ReadingsListener = std::function<void(const Readings&)>;

// A task without the types of its request and its result.
struct Task {
  std::function<void(const void* request, const RunContext& context, void* result)> run;
};

Registry<Task>& tasks();

// Makes `work` the task that its request names.  Returns true so that a namespace-scope constant
// can call it.
template <class Request, class Result>
bool add_task(Result (*work)(const Request&, const RunContext&)) {
  static_assert(std::is_same_v<Result, typename Request::Result>);
  const auto erased = [work](const void* request, const RunContext& context,
                             [[maybe_unused]] void* result) {
    const auto& asked = *static_cast<const Request*>(request);
    if constexpr (std::is_void_v<Result>) {
      work(asked, context);
    } else {
      *static_cast<Result*>(result) = work(asked, context);
    }
  };
  return tasks().add(Request::kTask, {.run = erased});
}

// Of a program that has loaded libkelvin, whose kelvin_run_task this is.
class ComputeLibrary {
 public:
  using Door = void (*)(const char* task, const void* request, const RunContext& context,
                        void* result);

  explicit ComputeLibrary(Door door) : door_(door) {}

  // What LibTorch throws becomes an Error if memory did not suffice, else a std::runtime_error.
  template <class Request>
  typename Request::Result run(const Request& request, const RunContext& context = {}) const {
    if constexpr (std::is_void_v<typename Request::Result>) {
      door_(Request::kTask, &request, context, nullptr);
    } else {
      typename Request::Result result{};
      door_(Request::kTask, &request, context, &result);
      return result;
    }
  }

 private:
  Door door_;
};

// Checks every setting and returns the config with nothing unset any more.
struct ResolveRequest {
  static constexpr auto kTask = "resolve";
  using Result = Config;

  Config config = {};
};

// Versions of LibTorch and BLAS, CPU capability in use, threads.
struct VersionsRequest {
  static constexpr auto kTask = "versions";
  using Result = nlohmann::ordered_json;
};

struct ThreadsRequest {
  static constexpr auto kTask = "threads";
  using Result = void;

  int64_t threads = 1;
};

}  // namespace kelvin

// The one symbol the tool looks up: does the task, see ComputeLibrary::run.
extern "C" void kelvin_run_task(const char* task, const void* request,
                                const kelvin::RunContext& context, void* result);
