#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace kelvin {

// --threads: how many threads compute.
class ThreadsFlag {
 public:
  void declare(CLI::App& command);

  int64_t threads() const;
  bool is_given() const { return !text_.empty(); }

 private:
  std::string text_;
};

}  // namespace kelvin
