#include "kelvin/data/decoded.h"

#include <torch/types.h>

#include "kelvin/math/parallel_for.h"

namespace kelvin {

Images decoded(const Images& images) {
  if (!images.files) return images;
  const auto side = images.files->side();
  const auto bytes = torch::empty({images.size(), side, side, 3}, torch::kUInt8);
  auto* target = bytes.data_ptr<uint8_t>();
  const auto image_bytes = side * side * 3;
  parallel_for(0, images.size(), /*grain_size=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      images.files->decode_middle(i, {target + i * image_bytes, static_cast<size_t>(image_bytes)});
    }
  });
  return {.pixels = bytes.permute({0, 3, 1, 2}).contiguous(), .labels = images.labels};
}

}  // namespace kelvin
