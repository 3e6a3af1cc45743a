#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kelvin/sources/known_dataset.h"

namespace kelvin {

// A download that is complete and has the right checksum.
struct DownloadedFile {
  std::string name;  // as its publisher calls it
  std::filesystem::path path;
};

// Turns the downloads of a route into the files of the dataset's first layout, below the empty
// folder `root`, each of the published size and md5.  Files that are not needed to read the dataset
// may be missing.  Files that are copied are moved, the other downloads stay.  `scratch` is another
// empty folder in the same file system.
void assemble(const KnownDataset& dataset, Unpacking unpacking,
              const std::vector<DownloadedFile>& downloads, const std::filesystem::path& scratch,
              const std::filesystem::path& root);

}  // namespace kelvin
