#include "kelvin/sources/pixel_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

struct Sums {
  uint64_t values = 0;
  uint64_t squares = 0;  // of at most 2^47 pixels
};

void add(Sums& sums, std::span<const uint8_t> plane) {
  // 32 bits for one row of squares are enough up to 66051 pixels, and let the compiler use vectors.
  constexpr size_t kRow = 65536;
  for (size_t begin = 0; begin < plane.size(); begin += kRow) {
    uint32_t values = 0;
    uint32_t squares = 0;
    for (const uint32_t value : plane.subspan(begin, std::min(kRow, plane.size() - begin))) {
      values += value;
      squares += value * value;
    }
    sums.values += values;
    sums.squares += squares;
  }
}

}  // namespace

PixelStatistics pixel_statistics(const RawImages& images) {
  check(images.size() > 0, "pixel statistics: need at least one image, got none");
  const auto expected = static_cast<size_t>(images.size() * images.image_bytes());
  check(images.pixels.size() == expected && expected > 0, "pixel statistics: the shape needs ",
        expected, " bytes, got ", images.pixels.size());
  const auto channels = static_cast<size_t>(images.channels);
  const auto plane = static_cast<size_t>(images.height * images.width);
  std::vector<Sums> sums(channels);
  const std::span<const uint8_t> pixels = images.pixels;
  for (size_t i = 0; i < pixels.size() / plane; ++i) {
    add(sums.at(i % channels), pixels.subspan(i * plane, plane));
  }
  PixelStatistics statistics;
  const auto count = static_cast<uint64_t>(images.size()) * plane;
  for (const auto& [values, squares] : sums) {
    using Wide = unsigned __int128;
    const auto spread = Wide{count} * squares - Wide{values} * values;  // count^2 times variance
    const auto pixels_count = static_cast<double>(count);
    statistics.mean.push_back(static_cast<double>(values) / (255 * pixels_count));
    statistics.deviation.push_back(std::sqrt(static_cast<double>(spread)) / (255 * pixels_count));
  }
  return statistics;
}

}  // namespace kelvin
