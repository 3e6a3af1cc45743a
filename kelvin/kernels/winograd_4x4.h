#pragma once

#include "kelvin/kernels/winograd_maps.h"

namespace kelvin {

constexpr int64_t kWinograd4x4Points = 36;  // of a transformed tile, 6 x 6

// Whether this processor has the vectors that the kernels are written for.
bool has_winograd_4x4();

// 3x3 convolutions with padding 1 and stride 1 by Winograd's F(4x4, 3x3) (Lavin and Gray, arXiv
// 1509.09308): 36 products for 16 outputs instead of 144.  Transforms make numbers larger before
// they cancel, so the errors of float32 are some ten times those of plain sums.

// Weights as winograd_4x4_forward wants them, [36, outputs / 16, inputs, 16]; those of the outputs
// [begin, end), which are multiples of 16.
void winograd_4x4_weights(const WinogradWeights<const float>& weights, const WinogradShape& shape,
                          int64_t begin, int64_t end, float* transformed);

// Tiles of 4x4 outputs of all images; what follows works on ranges of them.
int64_t winograd_4x4_tiles(const WinogradShape& shape);

// Outputs of the tiles [begin, end), which are part of maps of so many channels; `bias` may be
// null.
struct WinogradResults {
  float* data = nullptr;
  int64_t channels = 0;
};
void winograd_4x4_forward(const WinogradShape& shape, const float* maps, const float* transformed,
                          const float* bias, const WinogradResults& results, int64_t begin,
                          int64_t end);

// A share of the gradient of the weights: what tiles [begin, end), at least one, add to those of
// some outputs, both multiples of 16.
struct WinogradShare {
  int64_t channels = 0;  // of the maps that the gradients of outputs are part of
  int64_t begin = 0;
  int64_t end = 0;
  int64_t first_output = 0;
  int64_t last_output = 0;
};

// That share for transformed weights, [36, inputs, outputs].
void winograd_4x4_weight_gradient(const WinogradShape& shape, const float* maps,
                                  const float* gradients, const WinogradShare& share,
                                  float* transformed);

// The gradient of the weights of the outputs [begin, end), multiples of 16, from `parts` gradients
// of transformed ones, one after the other, which are added up.
void winograd_4x4_untransformed(const float* transformed, int64_t parts, const WinogradShape& shape,
                                int64_t begin, int64_t end, const WinogradWeights<float>& gradient);

}  // namespace kelvin
