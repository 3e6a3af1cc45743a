#pragma once

#include <CLI/CLI.hpp>

namespace kelvin {

// The flag --no-store of verbs that add what they found to the run they looked at.
class StoreFlag {
 public:
  void declare(CLI::App& command) {
    command.add_flag("--no-store", is_refused_,
                     "leave the run as it is: for one that is read-only or archived");
  }
  bool is_refused() const { return is_refused_; }

 private:
  bool is_refused_ = false;
};

}  // namespace kelvin
