#pragma once

#include <torch/types.h>

#include <string>

namespace kelvin {

// In which numbers weight layers multiply.  Weights, normalisations, softmaxes and losses are
// float32 always.
enum class Precision { fp32, bf16 };

Precision precision_of(const std::string& name);
const char* name_of(Precision precision);

// Whether this device multiplies bfloat16 itself.  Elsewhere LibTorch is twenty times slower in it
// than in float32.
bool multiplies_bfloat16(torch::DeviceType device);

// While it lives, models on this thread compute in `precision`.  bf16 is LibTorch's autocast where
// the device multiplies bfloat16; elsewhere what enters and leaves a product, forward and backward,
// is rounded to bfloat16, and the product itself is summed in float32, which is what units for
// bfloat16 do.
class PrecisionScope {
 public:
  PrecisionScope(Precision precision, torch::DeviceType device);
  PrecisionScope(Precision precision, bool is_native);  // whatever the device
  ~PrecisionScope();
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;

 private:
  bool was_rounding_;
  bool was_autocasting_;
};

// Whether products are to be rounded here and now.
bool rounds_products();

// The nearest bfloat16, ties to even, as float32; the gradient is rounded likewise.  The tensor
// itself if products are not rounded.
torch::Tensor in_precision(const torch::Tensor& tensor);

}  // namespace kelvin
