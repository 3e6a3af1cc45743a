#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kelvin {

// One thing that a config can name.
struct CatalogEntry {
  std::string name;
  std::string summary = {};
  std::string reference = {};
  // Of models, for images of 3 x 32 x 32 and 10 classes.
  int64_t parameters = 0;
  int64_t macs = 0;
  int64_t layers = 0;
  bool sums_to_one = true;  // of softmaxes
};

// All entries of a kind ("models", "datasets", "measures", "detectors", "softmaxes", "losses"), as
// the build wrote them down, so that listing them does not load LibTorch; or the built-in
// "recipes".
std::vector<CatalogEntry> catalog_entries(const std::string& kind);

}  // namespace kelvin
