#include "app/verbs/data.h"

#include "app/cli/subcommands.h"

namespace kelvin {

Registry<VerbEntry>& data_subcommands() {
  static Registry<VerbEntry> registry("job of kelvin data");
  return registry;
}

namespace {

const bool data_registered = verbs().add(
    "data", {
                .summary = "Datasets: what there is, fetch, verify, show",
                .make = [] { return std::make_unique<SubcommandVerb>(data_subcommands()); },
            });

}  // namespace
}  // namespace kelvin
