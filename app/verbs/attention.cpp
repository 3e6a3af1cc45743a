#include "app/verbs/attention.h"

#include "app/cli/subcommands.h"

namespace kelvin {

Registry<VerbEntry>& attention_subcommands() {
  static Registry<VerbEntry> registry("job of kelvin attention");
  return registry;
}

namespace {

const bool attention_registered = verbs().add(
    "attention",
    {
        .summary = "Attention over ever more items: max retrieval, adaptive temperature",
        .make = [] { return std::make_unique<SubcommandVerb>(attention_subcommands()); },
    });

}  // namespace
}  // namespace kelvin
