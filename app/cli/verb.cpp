#include "app/cli/verb.h"

#include "app/cli/help_text.h"

namespace kelvin {

void Verb::declare(CLI::App& command) {
  command.option_defaults()->take_last()->group(kOwnFlags);
  command.get_help_ptr()->group(kCommonFlags)->description("this text");
  declare_flags(command);
  command.option_defaults()->group(kCommonFlags);
  common_->declare(command, threads_help());
}

Registry<VerbEntry>& verbs() {
  static Registry<VerbEntry> registry("verb");
  return registry;
}

}  // namespace kelvin
