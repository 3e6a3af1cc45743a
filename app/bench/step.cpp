#include <fmt/format.h>

#include <cstdio>
#include <iostream>

#include "app/cli/common_flags.h"
#include "app/cli/compute.h"
#include "app/cli/run_context.h"
#include "app/verbs/bench.h"
#include "kelvin/core/check.h"
#include "kelvin/experiment/tasks/bench_steps.h"

namespace kelvin {
namespace {

using Json = nlohmann::ordered_json;

void answer(const Json& line) {
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

// The next line of stdin; null at its end.
Json next_order() {
  std::string line;
  if (!std::getline(std::cin, line)) return {};
  auto order = Json::parse(line, /*cb=*/nullptr, /*allow_exceptions=*/false);
  check(order.is_object(), "stdin: each line must be a JSON object, got '", line, "'");
  return order;
}

// 0 at the end of stdin as well.
int64_t steps_wanted() {
  const auto order = next_order();
  if (order.is_null()) return 0;
  check(order.contains("steps") && order.at("steps").is_number_integer(),
        "stdin: must be {\"steps\": N}, got '", order.dump(), "'");
  return order.at("steps").get<int64_t>();
}

StepBenchRequest request_of(const Json& order) {
  const bool is_valid = order.is_object() && order.contains("settings") &&
                        order.at("settings").is_object() && order.contains("start") &&
                        order.at("start").is_string();
  check(is_valid, "stdin: must begin with {\"settings\": {...}, \"start\": \"PATH\"}");
  StepBenchRequest request;
  for (const auto& [key, value] : order.at("settings").items()) request.settings.set(key, value);
  request.start = order.at("start").get<std::string>();
  return request;
}

// One of the two processes of 'bench train': a process of its own, so that its memory is its own.
class StepSide : public Verb {
 public:
  int run() override {
    try {
      run_orders();
    } catch (const Error& error) {
      answer({{"error", error.what()}});
      return kUserError;
    }
    return kSuccess;
  }

 private:
  void run_orders() const {
    auto request = request_of(next_order());
    const auto library = load_compute_library(common().threads());
    ProgressBar quiet(true);
    const auto context = run_context(quiet);
    std::string precision;
    request.on_start = [&](const BenchStart& start) {
      precision = start.settings.at("train.precision").get<std::string>();
      answer({{"settings", start.settings},
              {"versions", library.run(VersionsRequest{})},
              {"parameters", start.parameters},
              {"macs", start.macs}});
    };
    request.next_count = steps_wanted;
    request.on_steps = [](const TimedSteps& steps) {
      answer({{"losses", steps.losses},
              {"seconds", steps.seconds},
              {"data", steps.data},
              {"forward", steps.forward},
              {"backward", steps.backward},
              {"optimizer", steps.optimizer}});
    };
    library.run(request, context);
    if (!std::cin) return;
    const auto peak = library.run(PeakGemmRequest{.precision = precision}, context);
    answer({{"peak_gflops", peak.gflops}, {"peak_precision", peak.precision}});
  }
};

const bool step_registered = bench_subcommands().add(
    "step", {
                .summary = "kelvin's side of 'train': takes steps as JSON lines on stdin ask for",
                .make = [] { return std::make_unique<StepSide>(); },
                .is_internal = true,
            });

}  // namespace
}  // namespace kelvin
