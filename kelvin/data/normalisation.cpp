#include "kelvin/data/normalisation.h"

#include "kelvin/core/check.h"

namespace kelvin {

Normalisation normalisation_of(const std::string& name) {
  if (name == "dataset") return Normalisation::dataset;
  if (name == "imagenet") return Normalisation::imagenet;
  if (name == "half") return Normalisation::half;
  check(name == "none", "data.normalisation: must be dataset, imagenet, half or none, got '", name,
        "'");
  return Normalisation::none;
}

ChannelStatistics statistics_of(Normalisation normalisation, const ChannelStatistics& own) {
  switch (normalisation) {
    case Normalisation::dataset:
      return own;
    case Normalisation::imagenet:
      return {.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}};
    case Normalisation::half:
      return {.mean = {0.5, 0.5, 0.5}, .deviation = {0.5, 0.5, 0.5}};
    case Normalisation::none:
      return {.mean = {0, 0, 0}, .deviation = {1, 1, 1}};
  }
  return own;
}

}  // namespace kelvin
