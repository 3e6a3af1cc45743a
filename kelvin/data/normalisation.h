#pragma once

#include <array>
#include <string>

namespace kelvin {

// What pixels in [0, 1] become before a network sees them: (pixel - mean) / deviation per channel.
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
  std::array<double, 3> deviation = {0.5, 0.5, 0.5};
};

// What the normalisation uses for a dataset whose own statistics are `own`.
ChannelStatistics statistics_of(Normalisation normalisation, const ChannelStatistics& own);

}  // namespace kelvin
