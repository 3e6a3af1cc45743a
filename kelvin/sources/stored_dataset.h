#pragma once

#include <filesystem>

#include "kelvin/formats/image_folder.h"
#include "kelvin/formats/images.h"
#include "kelvin/sources/known_dataset.h"

namespace kelvin {

enum class StoredSplit { train, test };

// The layout in which the dataset lies below `data_folder`; null if it is not there.
const Layout* find_layout(const KnownDataset& dataset, const std::filesystem::path& data_folder);

// The same, but an Error if it is not there: it names the folders looked for and the command that
// fetches the dataset.
const Layout& require_layout(const KnownDataset& dataset, const std::filesystem::path& data_folder);

// All images of a split.  Files of the wrong size, labels out of range and the like are an Error
// that names file and offset.  Not for image folders.
RawImages read_stored(const KnownDataset& dataset, const std::filesystem::path& data_folder,
                      StoredSplit split);

// The files of a split of a dataset that is an image folder.
LabelledFiles list_stored(const KnownDataset& dataset, const std::filesystem::path& data_folder,
                          StoredSplit split);

}  // namespace kelvin
