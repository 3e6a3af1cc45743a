#include "app/verbs/data.h"

#include <algorithm>

#include "app/cli/catalog_file.h"
#include "app/cli/subcommands.h"

namespace kelvin {

Registry<VerbEntry>& data_subcommands() {
  static Registry<VerbEntry> registry("job of kelvin data");
  return registry;
}

bool is_embedded(const std::string& dataset) {
  const auto entries = catalog_entries("datasets");
  return std::any_of(entries.begin(), entries.end(), [&](const CatalogEntry& entry) {
    return entry.name == dataset && entry.summary.starts_with("embedded");
  });
}

namespace {

const bool data_registered = verbs().add(
    "data", {
                .summary = "Datasets: what there is, fetch, verify, show",
                .make = [] { return std::make_unique<SubcommandVerb>(data_subcommands()); },
            });

}  // namespace
}  // namespace kelvin
