#include "kelvin/data/augmentation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/core/text.h"

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
      return {.mean = {0.485, 0.456, 0.406}, .std_dev = {0.229, 0.224, 0.225}};
    case Normalisation::half:
      return {.mean = {0.5, 0.5, 0.5}, .std_dev = {0.5, 0.5, 0.5}};
    case Normalisation::none:
      return {.mean = {0, 0, 0}, .std_dev = {1, 1, 1}};
  }
  return own;
}

namespace {

constexpr int64_t kPadding = 4;
constexpr double kLeastArea = 0.08;
constexpr double kLargestRatio = 4.0 / 3.0;

bool crops(Augmentation augmentation) {
  return augmentation == Augmentation::crop || augmentation == Augmentation::crop_flip;
}

bool flips(Augmentation augmentation) {
  return augmentation == Augmentation::flip || augmentation == Augmentation::crop_flip ||
         augmentation == Augmentation::resized_crop_flip;
}

// The largest box in the middle whose sides are in an allowed ratio.
Box largest_middle(const PictureSize& size) {
  const auto width = static_cast<double>(size.width);
  const auto height = static_cast<double>(size.height);
  const double box_width = std::min(width, std::round(height * kLargestRatio));
  const double box_height = std::min(height, std::round(width * kLargestRatio));
  return {.left = std::floor((width - box_width) / 2),
          .top = std::floor((height - box_height) / 2),
          .width = box_width,
          .height = box_height};
}

}  // namespace

Augmentation augmentation_of(const std::string& name) {
  static const std::map<std::string, Augmentation> by_name = {
      {"none", Augmentation::none},
      {"flip", Augmentation::flip},
      {"crop", Augmentation::crop},
      {"crop-flip", Augmentation::crop_flip},
      {"resized-crop-flip", Augmentation::resized_crop_flip}};
  const auto found = by_name.find(name);
  if (found == by_name.end()) {
    std::vector<std::string> names;
    names.reserve(by_name.size());
    for (const auto& [known, augmentation] : by_name) names.push_back(known);
    check(false, "data.augment: must be one of ", join(names, ", "), ", got '", name, "'");
  }
  return found->second;
}

HashStream view_stream(uint64_t seed, int64_t epoch, int64_t index, int64_t view) {
  auto of_view = scramble(seed + static_cast<uint64_t>(epoch));
  if (view > 0) of_view = scramble(of_view + static_cast<uint64_t>(view));
  return {of_view, static_cast<uint64_t>(index)};
}

View draw_view(Augmentation augmentation, HashStream& stream) {
  View view;
  if (crops(augmentation)) {
    view.shift_x = stream.below(2 * kPadding + 1) - kPadding;
    view.shift_y = stream.below(2 * kPadding + 1) - kPadding;
  }
  if (flips(augmentation)) view.is_flipped = stream.coin();
  return view;
}

Box draw_box(const PictureSize& size, HashStream& stream) {
  constexpr int kAttempts = 10;
  const double area = static_cast<double>(size.width) * static_cast<double>(size.height);
  const auto log_ratio = static_cast<float>(std::log(kLargestRatio));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double fraction = stream.uniform(static_cast<float>(kLeastArea), 1);
    const double ratio = std::exp(stream.uniform(-log_ratio, log_ratio));
    const auto width = std::llround(std::sqrt(area * fraction * ratio));
    const auto height = std::llround(std::sqrt(area * fraction / ratio));
    if (width < 1 || height < 1 || width > size.width || height > size.height) continue;
    return {.left = static_cast<double>(stream.below(size.width - width + 1)),
            .top = static_cast<double>(stream.below(size.height - height + 1)),
            .width = static_cast<double>(width),
            .height = static_cast<double>(height)};
  }
  return largest_middle(size);
}

}  // namespace kelvin
