#pragma once

#include <cstdint>

#include "kelvin/kernels/bf16.h"
#include "kelvin/kernels/winograd_maps.h"

namespace kelvin {

// 3x3 convolutions with padding 1 and stride 1 of bfloat16 maps by Winograd's F(2x2, 3x3): 16
// products for 4 outputs instead of 36.  What is multiplied is rounded to bfloat16 once more, after
// its transform; larger tiles would need fewer products and lose what precision there is.

constexpr int64_t kWinograd2x2Points = 16;  // of a transformed tile, 4 x 4

// Whether this processor has products of bfloat16 in the vectors that the kernels are written for.
bool has_winograd_2x2();

// Rows of tiles of 2x2 outputs of all images; what follows works on ranges of them.
int64_t winograd_2x2_rows(const WinogradShape& shape);

// Weights as winograd_2x2_forward wants them, [16, outputs / 16, inputs, 16], pairs of inputs next
// to each other; those of the outputs [begin, end), which are multiples of 16.
void winograd_2x2_weights(const WinogradWeights<const float>& weights, const WinogradShape& shape,
                          int64_t begin, int64_t end, Bf16* transformed);

// The outputs of the rows of tiles [begin, end); `bias` may be null.
void winograd_2x2_forward(const WinogradShape& shape, const Bf16* maps, const Bf16* transformed,
                          const float* bias, Bf16* results, int64_t begin, int64_t end);

// Whether there are so few weights that a core has their gradient and a share of tiles at hand:
// each has tiles of its own then, and gradients are added up.  Otherwise a share is for all cores.
bool winograd_2x2_is_narrow(const WinogradShape& shape);

// So many rows of tiles at a time give their share of the gradient of the weights.
int64_t winograd_2x2_rows_of_a_share(const WinogradShape& shape);

// Numbers that maps of so many channels need for the rows of tiles of a share.
int64_t winograd_2x2_share_size(const WinogradShape& shape, int64_t channels);

// First come the transforms of the rows [begin, end) of a share that begins at row `first`: inputs
// and gradients of outputs, [16, channels / 16, tiles, 16], pairs of tiles next to each other.
struct WinogradShareMaps {
  Bf16* inputs = nullptr;
  Bf16* gradients = nullptr;
};
void winograd_2x2_share(const WinogradShape& shape, const Bf16* maps, const Bf16* gradients,
                        int64_t first, int64_t begin, int64_t end, const WinogradShareMaps& share);

// Then its products, of the points [begin, end), are added to [16, inputs, outputs], or begin it.
void winograd_2x2_weight_gradient(const WinogradShape& shape, const WinogradShareMaps& share,
                                  int64_t rows, bool is_first, int64_t begin, int64_t end,
                                  float* transformed);

// The gradient of the weights of the outputs [begin, end), multiples of 16, from `parts` gradients
// of transformed ones, one after the other, which are added up in the first.
void winograd_2x2_untransformed(float* transformed, int64_t parts, const WinogradShape& shape,
                                int64_t begin, int64_t end, const WinogradWeights<float>& gradient);

}  // namespace kelvin
