#include "app/bench/race.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "app/bench/scratch_folder.h"
#include "app/cli/interrupts.h"
#include "kelvin/core/check.h"

namespace kelvin {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kComparedSteps = 3;
constexpr double kRoundSeconds = 2;
constexpr double kSlowStep = 5;  // seconds; of such a step a round has one
// After it threads of the side that just ran have stopped to spin for more work.
constexpr auto kPause = std::chrono::milliseconds(50);

int64_t steps_of_round(double step_seconds, const RaceOptions& options) {
  if (options.steps > 0) return options.steps;
  if (step_seconds > kSlowStep) return 1;
  return std::max<int64_t>(2, std::llround(std::ceil(kRoundSeconds / step_seconds)));
}

double step_seconds(const Json& steps) {
  return steps.at("seconds").get<double>() / static_cast<double>(steps.at("losses").size());
}

void check_not_interrupted() { check(interrupts() == 0, "stopped"); }

// In the loss of step `step`, from 0 on, relative.  What rounding differs by at first, each step of
// a freshly drawn network makes larger, whoever computes it.
double allowed_difference(const std::string& precision, size_t step) {
  constexpr double kOfBf16 = 3e-2;
  constexpr double kOfFp32 = 1e-4;
  constexpr double kGrowth = 3;
  if (precision == "bf16") return kOfBf16;
  return std::min(kOfFp32 * std::pow(kGrowth, step), kOfBf16);
}

void compare_losses(const RaceResult& result) {
  for (size_t i = 0; i < result.kelvin.losses.size(); ++i) {
    const double allowed = allowed_difference(result.precision(), i);
    const double ours = result.kelvin.losses[i];
    const double theirs = result.pytorch->losses.at(i);
    check(std::abs(ours - theirs) <= allowed * std::abs(theirs), result.name, " ",
          result.precision(), ": the loss of step ", i + 1, " must agree to ", allowed, ", is ",
          ours, " by kelvin and ", theirs, " by PyTorch");
  }
}

// Both sides of one race, and what came of it so far.
class Race {
 public:
  Race(const BenchRow& row, const RaceOptions& options) : options_(options) {
    result_.name = row.name;
    start_kelvin(row);
    if (!options.python.empty()) start_pytorch();
  }

  RaceResult run() {
    take_first_steps();
    warm_up();
    for (int64_t round = 0; round < options_.rounds; ++round) {
      options_.on_round(round, options_.rounds);
      take_turn(*kelvin_, kelvin_steps_, result_.kelvin, &result_.parts);
      if (pytorch_) take_turn(*pytorch_, pytorch_steps_, *result_.pytorch, nullptr);
    }
    result_.kelvin.memory = kelvin_->peak_memory();
    if (pytorch_) result_.pytorch->memory = pytorch_->peak_memory();
    const auto peak = kelvin_->take_steps(0);
    result_.peak_gflops = peak.at("peak_gflops");
    result_.peak_precision = peak.at("peak_precision");
    return result_;
  }

 private:
  std::string start_file() const { return (folder_.path() / "start.safetensors").string(); }

  void start_kelvin(const BenchRow& row) {
    kelvin_ = kelvin_side(options_.threads, folder_.path());
    const auto start = kelvin_->ask({{"settings", row.settings.values()},
                                     {"start", options_.python.empty() ? "" : start_file()}});
    result_.settings = start.at("settings");
    result_.versions = start.at("versions");
    result_.parameters = start.at("parameters");
    result_.macs = start.at("macs");
  }

  void start_pytorch() {
    const Json start = {{"settings", result_.settings},
                        {"start", start_file()},
                        {"threads", options_.threads.count},
                        {"threads_given", options_.threads.is_given}};
    pytorch_ = pytorch_side(options_.python, start, folder_.path(), result_.about_pytorch,
                            result_.pytorch_missing);
    if (pytorch_) result_.pytorch.emplace();
  }

  // Their losses are compared; how long they took is a first guess.
  void take_first_steps() {
    const auto ours = steps_of(*kelvin_, {{"steps", kComparedSteps}});
    result_.kelvin.losses = ours.at("losses").get<std::vector<double>>();
    kelvin_step_ = step_seconds(ours);
    if (!pytorch_) return;
    const auto theirs = steps_of(*pytorch_, {{"steps", kComparedSteps}});
    result_.pytorch->losses = theirs.at("losses").get<std::vector<double>>();
    pytorch_step_ = step_seconds(theirs);
    compare_losses(result_);
  }

  void warm_up() {
    if (kelvin_step_ < kSlowStep) {
      const auto count = steps_of_round(kelvin_step_, options_);
      kelvin_step_ = step_seconds(steps_of(*kelvin_, {{"steps", count}}));
    }
    if (pytorch_ && pytorch_step_ < kSlowStep) {
      const auto count = steps_of_round(pytorch_step_, options_);
      const auto tuned = steps_of(*pytorch_, {{"tune", count}});
      pytorch_step_ = step_seconds(tuned);
      for (const char* choice : {"channels_last", "foreach"}) {
        result_.about_pytorch[choice] = tuned.at(choice);
      }
    }
    kelvin_steps_ = steps_of_round(kelvin_step_, options_);
    pytorch_steps_ = steps_of_round(pytorch_step_, options_);
  }

  Json steps_of(BenchSide& side, const Json& order) {
    check_not_interrupted();
    std::this_thread::sleep_for(kPause);
    return side.ask(order);
  }

  void take_turn(BenchSide& side, int64_t count, SideResult& result, StepParts* parts) {
    const auto steps = steps_of(side, {{"steps", count}});
    const auto images = static_cast<double>(count * result_.batch_size());
    result.images_per_second.push_back(images / steps.at("seconds").get<double>());
    if (parts == nullptr) return;
    const double share = 1e3 / static_cast<double>(count * options_.rounds);
    parts->all += share * steps.at("seconds").get<double>();
    parts->data += share * steps.at("data").get<double>();
    parts->forward += share * steps.at("forward").get<double>();
    parts->backward += share * steps.at("backward").get<double>();
    parts->optimizer += share * steps.at("optimizer").get<double>();
  }

  const RaceOptions& options_;
  ScratchFolder folder_;
  RaceResult result_;
  std::unique_ptr<BenchSide> kelvin_;
  std::unique_ptr<BenchSide> pytorch_;
  double kelvin_step_ = 0;  // seconds
  double pytorch_step_ = 1;
  int64_t kelvin_steps_ = 0;  // of a round
  int64_t pytorch_steps_ = 0;
};

}  // namespace

std::vector<double> RaceResult::ratios() const {
  std::vector<double> ratios;
  if (!pytorch) return ratios;
  for (size_t i = 0; i < kelvin.images_per_second.size(); ++i) {
    ratios.push_back(kelvin.images_per_second[i] / pytorch->images_per_second.at(i));
  }
  return ratios;
}

double RaceResult::gflops(const SideResult& side) const {
  // A multiply-add is two operations, and a step goes forward once and backward at twice the cost.
  return 2e-9 * 3 * static_cast<double>(macs) * median_of(side.images_per_second);
}

double RaceResult::aim() const {
  check(pytorch.has_value(), "race: has no aim without PyTorch");
  constexpr double kMost = 1.5;
  constexpr double kShareOfPeak = 0.85;
  return std::clamp(kShareOfPeak * peak_gflops / gflops(*pytorch), 1.0, kMost);
}

double median_of(std::vector<double> values) {
  check(!values.empty(), "median: needs at least one value");
  std::sort(values.begin(), values.end());
  const auto middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

RaceResult race(const BenchRow& row, const RaceOptions& options) {
  return Race(row, options).run();
}

}  // namespace kelvin
