#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kelvin/formats/images.h"

namespace kelvin {

struct MosaicImage {
  Picture picture = {};
  std::string label = {};
};

// One image of several; grey ones get three equal channels.
Picture picture_of(const RawImages& images, int64_t index);

// The images row by row on a light ground, each with its label below.  Small ones are enlarged by a
// whole factor, so that their pixels stay visible; those above 96 pixels are shrunk.  Labels that
// are too long end in "...".
Picture draw_mosaic(const std::vector<MosaicImage>& images, int64_t columns);

}  // namespace kelvin
