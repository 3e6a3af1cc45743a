#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "kelvin/data/canvas.h"
#include "kelvin/formats/image_file.h"
#include "kelvin/formats/resize.h"

namespace kelvin {

// What pixels in [0, 1] become before a network sees them: (pixel - mean) / standard deviation per
// channel.
enum class Normalisation {
  dataset,   // by the dataset's own statistics
  imagenet,  // by those of ImageNet, whatever the data: what most published weights expect
  half,      // to [-1, 1]: what published vision transformers expect
  none,
};

// "dataset", "imagenet", "half", "none"; anything else is an Error.
Normalisation normalisation_of(const std::string& name);

struct ChannelStatistics {
  std::array<double, 3> mean = {0.5, 0.5, 0.5};
  std::array<double, 3> std_dev = {0.5, 0.5, 0.5};
};

// What the normalisation uses for a dataset whose own statistics are `own`.
ChannelStatistics statistics_of(Normalisation normalisation, const ChannelStatistics& own);

// How training images are varied; images are measured as they are.
enum class Augmentation {
  none,
  flip,               // left to right, every second time
  crop,               // padded with 4 black pixels on each side, then a random window
  crop_flip,          // both: the usual recipe for CIFAR
  resized_crop_flip,  // a random part of the picture, resized: the usual recipe for ImageNet
};

// "none", "flip", "crop", "crop-flip", "resized-crop-flip"; anything else is an Error.
Augmentation augmentation_of(const std::string& name);

// How an image is shown once.
struct View {
  int64_t shift_x = 0;  // of the window against the image, in pixels
  int64_t shift_y = 0;
  bool is_flipped = false;
};

// The random numbers behind one showing of one image: a function of (seed, epoch, index, view)
// alone.  `view` counts how often the image is shown in the same batch, from 0.
HashStream view_stream(uint64_t seed, int64_t epoch, int64_t index, int64_t view = 0);

View draw_view(Augmentation augmentation, HashStream& stream);

// The part of a picture that torchvision's RandomResizedCrop takes: 8 to 100 % of the area, sides
// in a ratio of 3:4 to 4:3.
Box draw_box(const PictureSize& size, HashStream& stream);

}  // namespace kelvin
