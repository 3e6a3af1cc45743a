#include "kelvin/train/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "kelvin/core/check.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {
namespace {

// From `begin` to `end` along half a cosine; `fraction` runs from 0 to 1.
double along_cosine(double begin, double end, double fraction) {
  return end + (begin - end) * 0.5 * (1 + std::cos(std::numbers::pi * fraction));
}

double after_milestones(const LearningRateOptions& options, int64_t step) {
  double learning_rate = options.learning_rate;
  for (const auto milestone : options.milestones) {
    if (step >= milestone) learning_rate *= options.decay;
  }
  return learning_rate;
}

double one_cycle(const LearningRateOptions& options, int64_t step) {
  constexpr double kFirstDivisor = 25;
  constexpr double kLastDivisor = 1e4;  // of the first learning rate
  const auto last = static_cast<double>(options.total_steps - 1);
  const double first_rate = options.learning_rate / kFirstDivisor;
  const double peak = options.rising_fraction * static_cast<double>(options.total_steps) - 1;
  const auto now = static_cast<double>(step);
  if (now <= peak) {
    return along_cosine(first_rate, options.learning_rate, peak > 0 ? now / peak : 1);
  }
  const double begin = std::max(peak, 0.0);
  const double fraction = last > begin ? (now - begin) / (last - begin) : 1;
  return along_cosine(options.learning_rate, first_rate / kLastDivisor, fraction);
}

}  // namespace

Schedule schedule_of(const std::string& name) {
  if (name == "constant") return Schedule::constant;
  if (name == "cosine") return Schedule::cosine;
  if (name == "step") return Schedule::step;
  if (name == "one-cycle") return Schedule::one_cycle;
  check(false, "train.schedule: must be constant, cosine, step or one-cycle, got '", name, "'");
  return Schedule::constant;
}

double learning_rate(const LearningRateOptions& options, int64_t step) {
  check(step >= 0 && step < options.total_steps, "learning_rate: step must be in [0, ",
        options.total_steps, "), got ", step);
  if (options.schedule == Schedule::one_cycle) return one_cycle(options, step);
  if (step < options.warmup_steps) {
    return options.learning_rate * static_cast<double>(step + 1) /
           static_cast<double>(options.warmup_steps);
  }
  if (options.schedule == Schedule::constant) return options.learning_rate;
  if (options.schedule == Schedule::step) return after_milestones(options, step);
  const auto done = static_cast<double>(step - options.warmup_steps);
  const auto total = static_cast<double>(options.total_steps - options.warmup_steps);
  return options.learning_rate * 0.5 * (1 + std::cos(std::numbers::pi * done / total));
}

namespace {

struct ScheduleName {
  const char* name;
  TemperatureSchedule schedule;
};
constexpr std::array kNames = {ScheduleName{"constant", TemperatureSchedule::constant},
                               ScheduleName{"linear", TemperatureSchedule::linear},
                               ScheduleName{"cosine", TemperatureSchedule::cosine},
                               ScheduleName{"step", TemperatureSchedule::step},
                               ScheduleName{"cyclic", TemperatureSchedule::cyclic},
                               ScheduleName{"warm", TemperatureSchedule::warm},
                               ScheduleName{"learned", TemperatureSchedule::learned}};

}  // namespace

TemperatureSchedule temperature_schedule_of(const std::string& name) {
  for (const auto& each : kNames) {
    if (name == each.name) return each.schedule;
  }
  check(false,
        "train.temperature_schedule: must be constant, linear, cosine, step, cyclic, warm or "
        "learned, got '",
        name, "'");
  return TemperatureSchedule::constant;
}

double temperature_at(const TemperatureOptions& options, int64_t step, int64_t total_steps,
                      int64_t steps_per_epoch) {
  const double first = options.first;
  const double change = options.last - first;
  const double fraction =
      static_cast<double>(step) / static_cast<double>(std::max<int64_t>(total_steps - 1, 1));
  const double periods =
      static_cast<double>(step) / (options.period_epochs * static_cast<double>(steps_per_epoch));
  switch (options.schedule) {
    case TemperatureSchedule::constant:
    case TemperatureSchedule::learned:
      return first;
    case TemperatureSchedule::linear:
      return first + change * fraction;
    case TemperatureSchedule::cosine:
      return first + change * 0.5 * (1 - std::cos(std::numbers::pi * fraction));
    case TemperatureSchedule::step:
      return first * std::pow(options.factor, std::floor(periods));
    case TemperatureSchedule::cyclic: {
      const double phase = periods - std::floor(periods);
      return first + change * (1 - std::abs(2 * phase - 1));
    }
    case TemperatureSchedule::warm:
      if (periods >= 1) return options.last;
      return first * std::pow(options.last / first, periods);
  }
  return first;
}

void check_temperatures(const TemperatureOptions& options, int64_t total_steps,
                        int64_t steps_per_epoch) {
  check_temperature("train", options.first);
  check_temperature("train: at the end of its schedule", options.last);
  check(std::isfinite(options.period_epochs) && options.period_epochs > 0,
        "train: the period of the temperature must be above 0 epochs, got ", options.period_epochs);
  check(std::isfinite(options.factor) && options.factor > 0,
        "train: the factor of the temperature must be above 0, got ", options.factor);
  // Every schedule is monotonous or moves between its ends.
  check_temperature("train: at the last step",
                    temperature_at(options, total_steps - 1, total_steps, steps_per_epoch));
}

}  // namespace kelvin
