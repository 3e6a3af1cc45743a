// A dataset of your own: put a file like this into kelvin/data/ and its test into
// tests/data/.  Nothing else is edited.

#include <torch/types.h>

#include "kelvin/core/seeds.h"
#include "kelvin/data/dataset.h"

namespace kelvin {
namespace {

constexpr int64_t kClasses = 4;

// Boards whose squares are 1, 2, 4 or 8 pixels wide: the class is the width.
Images boards(int64_t samples, uint64_t seed) {
  Images images{.pixels = torch::empty({samples, 3, 32, 32}, torch::kUInt8),
                .labels = torch::arange(samples, torch::kInt64).remainder(kClasses)};
  auto* pixels = images.pixels.data_ptr<uint8_t>();
  for (int64_t i = 0; i < samples * 3 * 32 * 32; ++i) {
    const int64_t x = i % 32;
    const int64_t y = i / 32 % 32;
    const int64_t image = i / (3 * 32 * 32);
    const int64_t shift = static_cast<int64_t>(scramble(seed + uint64_t(image)) % 32);
    const int64_t width = int64_t{1} << (image % kClasses);
    pixels[i] = ((x + shift) / width + y / width) % 2 == 0 ? 32 : 224;
  }
  return images;
}

Dataset load(const DatasetRequest& request) {
  Dataset dataset;
  dataset.train = boards(request.train_samples > 0 ? request.train_samples : 1000, 1);
  dataset.test = boards(request.test_samples > 0 ? request.test_samples : 200, 2);
  return dataset;
}

const bool checkerboards_registered =
    datasets().add("checkerboards", {
                                        .summary = "boards by square width",
                                        .reference = "",
                                        .classes = kClasses,
                                        .load = load,
                                    });

}  // namespace
}  // namespace kelvin
