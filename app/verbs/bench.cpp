#include "app/verbs/bench.h"

#include "app/cli/subcommands.h"

namespace kelvin {

Registry<VerbEntry>& bench_subcommands() {
  static Registry<VerbEntry> registry("job of kelvin bench");
  return registry;
}

namespace {

const bool bench_registered = verbs().add(
    "bench", {
                 .summary = "Speed of training on this machine, beside PyTorch",
                 .make = [] { return std::make_unique<SubcommandVerb>(bench_subcommands()); },
             });

}  // namespace
}  // namespace kelvin
