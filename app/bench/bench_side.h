#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/bench/line_process.h"

namespace kelvin {

// Threads that both sides compute with.
struct BenchThreads {
  int64_t count = 1;
  bool is_given = false;  // by the user; otherwise PyTorch's libraries keep their own defaults
};

// A process that trains one network when it is told to, driven by JSON lines: first what to train,
// then {"steps": n}.
class BenchSide {
 public:
  BenchSide(const std::string& name, const std::vector<std::string>& words,
            const std::filesystem::path& log)
      : process_(name, words, log) {}

  // The answer; an Error if it is one.
  nlohmann::ordered_json ask(const nlohmann::ordered_json& order);

  // The same for some steps: their "losses", and "seconds" of all of them.
  nlohmann::ordered_json take_steps(int64_t count) { return ask({{"steps", count}}); }

  int64_t peak_memory() const { return process_.peak_memory(); }

 private:
  LineProcess process_;
};

// This program again, as `kelvin bench step`.  `folder` is for its log.
std::unique_ptr<BenchSide> kelvin_side(const BenchThreads& threads,
                                       const std::filesystem::path& folder);

// PyTorch with what kelvin's side said about its start.  If there is none, null, and `missing` says
// why.
std::unique_ptr<BenchSide> pytorch_side(const std::string& python,
                                        const nlohmann::ordered_json& start,
                                        const std::filesystem::path& folder,
                                        nlohmann::ordered_json& about, std::string& missing);

}  // namespace kelvin
