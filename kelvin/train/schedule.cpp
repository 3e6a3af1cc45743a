#include "kelvin/train/schedule.h"

#include <cmath>
#include <numbers>

#include "kelvin/core/check.h"

namespace kelvin {

Schedule schedule_of(const std::string& name) {
  if (name == "constant") return Schedule::constant;
  if (name == "cosine") return Schedule::cosine;
  check(false, "train.schedule: must be constant or cosine, got '", name, "'");
  return Schedule::constant;
}

double learning_rate(const RateOptions& options, int64_t step) {
  check(step >= 0 && step < options.total_steps, "learning_rate: step must be in [0, ",
        options.total_steps, "), got ", step);
  if (step < options.warmup_steps) {
    return options.rate * static_cast<double>(step + 1) / static_cast<double>(options.warmup_steps);
  }
  if (options.schedule == Schedule::constant) return options.rate;
  const auto done = static_cast<double>(step - options.warmup_steps);
  const auto total = static_cast<double>(options.total_steps - options.warmup_steps);
  return options.rate * 0.5 * (1 + std::cos(std::numbers::pi * done / total));
}

}  // namespace kelvin
