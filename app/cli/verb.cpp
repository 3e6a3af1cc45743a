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

VerbCommand command_of(const std::string& verb) {
  const auto& entry = verbs().find(verb);
  VerbCommand declared{.verb = entry.make(),
                       .command = std::make_unique<CLI::App>(entry.summary, "kelvin " + verb)};
  declared.command->allow_extras();
  declared.verb->declare(*declared.command);
  return declared;
}

}  // namespace kelvin
