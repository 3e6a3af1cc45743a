#pragma once

#include <string>
#include <vector>

namespace kelvin {

// One thing that a config can name.
struct CatalogEntry {
  std::string name;
  std::string summary;
  std::string reference;
};

// All entries of a kind ("models", "datasets", "measures", "detectors", "softmaxes"), as the
// build wrote them down, so that listing them does not load LibTorch.
std::vector<CatalogEntry> catalog_entries(const std::string& kind);

}  // namespace kelvin
