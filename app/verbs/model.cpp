#include "app/verbs/model.h"

#include "app/cli/subcommands.h"

namespace kelvin {

Registry<VerbEntry>& model_subcommands() {
  static Registry<VerbEntry> registry("job of kelvin model");
  return registry;
}

namespace {

const bool model_registered = verbs().add(
    "model", {
                 .summary = "Networks: layers of one, norms of their first logits",
                 .make = [] { return std::make_unique<SubcommandVerb>(model_subcommands()); },
             });

}  // namespace
}  // namespace kelvin
