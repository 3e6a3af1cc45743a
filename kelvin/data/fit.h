#pragma once

#include "kelvin/data/dataset.h"

namespace kelvin {

// The images as a network for `shape` takes them, so that MNIST can be shown to a network for
// CIFAR: grey is repeated over three channels, three channels become their luma (ITU-R 601-2, as
// Pillow's), another size is resampled bilinearly.  Images that fit already are returned as they
// are; those on disk become bytes in memory only if they do not fit.
Images fit_to(const Images& images, const ImageShape& shape);

// The same images with their bytes in memory; files are decoded on all cores, the middle of each.
Images decoded(const Images& images);

}  // namespace kelvin
