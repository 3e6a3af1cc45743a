#include "app/verbs/theory.h"

#include "app/cli/subcommands.h"

namespace kelvin {

Registry<VerbEntry>& theory_subcommands() {
  static Registry<VerbEntry> registry("job of kelvin theory");
  return registry;
}

namespace {

const bool theory_registered = verbs().add(
    "theory",
    {
        .summary = "Rank after a softmax, its singular values, rank-2 solutions, dispersion",
        .make = [] { return std::make_unique<SubcommandVerb>(theory_subcommands()); },
    });

}  // namespace
}  // namespace kelvin
