#pragma once

#include "kelvin/data/dataset.h"
#include "kelvin/formats/image_folder.h"

namespace kelvin {

// Pictures on disk as a split, of the size that the request asks for, else of `default_size`.
Images pictures(LabelledFiles files, const DatasetRequest& request, int64_t default_size);

}  // namespace kelvin
