#pragma once

#include <vector>

#include "kelvin/formats/raw_images.h"

namespace kelvin {

// Of all pixels of a channel, in [0, 1].  Summed in whole numbers, hence exact up to the last
// division and square root.
struct PixelStatistics {
  std::vector<double> mean = {};       // [channels]
  std::vector<double> deviation = {};  // of the population: divided by the number of pixels
};

// No image, or pixels that do not fit the shape, is an Error.
PixelStatistics pixel_statistics(const RawImages& images);

}  // namespace kelvin
