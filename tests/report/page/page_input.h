#pragma once

#include <string>

#include "kelvin/report/page/page.h"
#include "tests/report/report_runs.h"

namespace kelvin {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Three seeds at each of two temperatures, of which the higher has the lower rank; and that claim.
inline PageInput two_temperatures() {
  PageInput input{.title = "Low and high T", .command = "kelvin demo"};
  for (int64_t seed = 0; seed < 3; ++seed) {
    input.runs.push_back(run_with_rank(1, seed, 49));
    input.runs.push_back(run_with_rank(100, seed, 10 + static_cast<double>(seed)));
  }
  for (auto& run : input.runs) add_metrics(run, {{0.5, 30}, {0.9, 20}});
  input.claims = {{.reading = "solution_rank",
                   .direction = "lower",
                   .at = {{"train.temperature", 100}},
                   .against = {{"train.temperature", 1}}}};
  return input;
}

}  // namespace kelvin
