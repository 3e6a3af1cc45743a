#pragma once

#include <cstdint>
#include <span>

namespace kelvin {

constexpr int64_t kTextureClasses = 10;

// Draws image `index` of the stream `seed` into `pixels` (3 x 32 x 32 bytes, channels first) and
// returns its label, index % 10: stripes, checks, dots, rings, waves, zigzag, bricks, spokes,
// crosses, blobs.
//
// The out-of-distribution companion of the glyphs: patterns without an object, in colours,
// polarity, gradient and noise of the same distribution, and with about the same mean and
// deviation.
int64_t draw_texture(uint64_t seed, uint64_t index, std::span<uint8_t> pixels);

}  // namespace kelvin
