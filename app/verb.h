#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

#include "kelvin/core/registry.h"

namespace kelvin {

// One job of the tool: `kelvin NAME ...`.  Its flags are its members.
class Verb {
 public:
  virtual ~Verb() = default;

  virtual void declare_flags(CLI::App& command) = 0;

  // Called after the flags were read; returns the exit code.
  virtual int run() = 0;
};

struct VerbEntry {
  std::string summary;  // one line
  std::function<std::unique_ptr<Verb>()> make;
};

Registry<VerbEntry>& verbs();

}  // namespace kelvin
