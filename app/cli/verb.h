#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

#include "app/cli/common_flags.h"
#include "kelvin/core/registry.h"

namespace kelvin {

// One job of the tool: `kelvin NAME ...`.  Its flags are its members.
class Verb {
 public:
  virtual ~Verb() = default;

  // Its own flags, and those that all verbs have.  Of two equal flags the last one wins.
  void declare(CLI::App& command);

  // Called after the flags were read; returns the exit code.
  virtual int run() = 0;

  const CommonFlags& common() const { return *common_; }
  // Jobs of one verb share its flags: they may stand before the job's name as well.
  void share_common_flags(const Verb& other) { common_ = other.common_; }

 protected:
  // Those that only this verb has, if any.
  virtual void declare_flags(CLI::App& /*command*/) {}
  // What --threads means to this verb, with its default.
  virtual std::string threads_help() const { return kThreadsHelp; }

 private:
  std::shared_ptr<CommonFlags> common_ = std::make_shared<CommonFlags>();
};

struct VerbEntry {
  std::string summary;  // one line
  std::function<std::unique_ptr<Verb>()> make;
  bool is_internal = false;  // what the tool starts itself: no help or message names it
};

Registry<VerbEntry>& verbs();

// A verb with its flags and jobs as they are declared: what is read from the command line, and what
// help, manual and completion are made of.
struct VerbCommand {
  std::unique_ptr<Verb> verb;
  std::unique_ptr<CLI::App> command;
};

VerbCommand command_of(const std::string& verb);

}  // namespace kelvin
