#include "app/cli/catalog_file.h"

#include <nlohmann/json.hpp>

#include "app/cli/compute.h"
#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/runs/recipe.h"

namespace kelvin {
namespace {

std::vector<CatalogEntry> recipe_entries() {
  std::vector<CatalogEntry> entries;
  for (const auto& [name, text] : builtin_recipes()) {
    const auto recipe = parse_recipe(text, name, /*scale=*/"", /*overrides=*/{}, first_of_grid);
    entries.push_back({.name = name, .summary = recipe.title});
  }
  return entries;
}

}  // namespace

std::vector<CatalogEntry> catalog_entries(const std::string& kind) {
  if (kind == "recipes") return recipe_entries();
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
