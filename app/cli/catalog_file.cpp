#include "app/cli/catalog_file.h"

#include <nlohmann/json.hpp>

#include "app/cli/compute.h"
#include "kelvin/core/check.h"
#include "kelvin/core/files.h"

namespace kelvin {

std::vector<CatalogEntry> catalog_entries(const std::string& kind) {
  const auto path = installed_file("catalog.json", {".", "../share/kelvin"});
  std::vector<CatalogEntry> entries;
  try {
    const auto catalog = nlohmann::json::parse(read_file(path));
    for (const auto& entry : catalog.at(kind)) {
      entries.push_back({.name = entry.at("name"),
                         .summary = entry.value("summary", ""),
                         .reference = entry.value("reference", ""),
                         .parameters = entry.value("parameters", int64_t{0}),
                         .macs = entry.value("macs", int64_t{0}),
                         .layers = entry.value("layers", int64_t{0}),
                         .sums_to_one = entry.value("sums_to_one", true)});
    }
  } catch (const nlohmann::json::exception& error) {
    check(false, path.string(), ": not a catalog: ", error.what());
  }
  return entries;
}

}  // namespace kelvin
