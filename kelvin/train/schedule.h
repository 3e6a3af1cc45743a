#pragma once

#include <cstdint>
#include <string>

namespace kelvin {

enum class Schedule { constant, cosine };

Schedule schedule_of(const std::string& name);

struct RateOptions {
  double rate = 0.1;
  Schedule schedule = Schedule::cosine;
  int64_t warmup_steps = 0;  // rises linearly from rate / warmup_steps
  int64_t total_steps = 1;
};

// The learning rate of step 0, 1, ..., total_steps - 1.
double learning_rate(const RateOptions& options, int64_t step);

}  // namespace kelvin
