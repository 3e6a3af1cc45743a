#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kelvin {

enum class Schedule { constant, cosine, step, one_cycle };

Schedule schedule_of(const std::string& name);

struct LearningRateOptions {
  double learning_rate = 0.1;  // the highest
  Schedule schedule = Schedule::cosine;
  int64_t warmup_steps = 0;  // rises linearly from learning_rate / warmup_steps; not with one_cycle
  int64_t total_steps = 1;
  std::vector<int64_t> milestones = {};  // of step: from each of these steps on ...
  double decay = 0.1;                    // ... the learning rate is multiplied by this
  double rising_fraction = 0.3;          // of one_cycle: the fraction of steps in which it rises
};

// The learning rate of step 0, 1, ..., total_steps - 1.  one_cycle is Smith's with cosines, from
// learning_rate / 25 to learning_rate and down to learning_rate / 250 000, as in PyTorch.
double learning_rate(const LearningRateOptions& options, int64_t step);

// How the temperature of the loss changes over the steps, from `first` on:
//   constant  stays
//   linear    straight to `last` over the whole training
//   cosine    to `last` along half a cosine over the whole training
//   step      times `factor` after every period
//   cyclic    to `last` and back in every period, straight
//   warm      to `last` within one period, evenly in log T, then stays there
//   learned   the optimizer moves log T
enum class TemperatureSchedule { constant, linear, cosine, step, cyclic, warm, learned };

TemperatureSchedule temperature_schedule_of(const std::string& name);

struct TemperatureOptions {
  double first = 1;
  TemperatureSchedule schedule = TemperatureSchedule::constant;
  double last = 1;
  double factor = 0.5;
  double period_epochs = 1;
};

// The temperature of step 0, 1, ..., total_steps - 1; of a learned one where it starts.
double temperature_at(const TemperatureOptions& options, int64_t step, int64_t total_steps,
                      int64_t steps_per_epoch);

// Throws unless all temperatures that occur are finite and above 0.
void check_temperatures(const TemperatureOptions& options, int64_t total_steps,
                        int64_t steps_per_epoch);

}  // namespace kelvin
