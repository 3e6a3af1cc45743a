#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kelvin {

enum class Schedule { constant, cosine, step, one_cycle };

Schedule schedule_of(const std::string& name);

struct RateOptions {
  double rate = 0.1;  // the highest
  Schedule schedule = Schedule::cosine;
  int64_t warmup_steps = 0;  // rises linearly from rate / warmup_steps; not with one_cycle
  int64_t total_steps = 1;
  std::vector<int64_t> milestones = {};  // of step: from each of these steps on ...
  double decay = 0.1;                    // ... the rate is multiplied by this
  double rising_share = 0.3;             // of one_cycle: the share of steps in which it rises
};

// The learning rate of step 0, 1, ..., total_steps - 1.  one_cycle is Smith's with cosines, from
// rate / 25 to rate and down to rate / 250 000, as in PyTorch.
double learning_rate(const RateOptions& options, int64_t step);

}  // namespace kelvin
