#pragma once

#include "kelvin/experiment/compute_api.h"
#include "kelvin/model/precision.h"

namespace kelvin {

// How fast this machine multiplies at best, as LibTorch does it: the fastest of some products of
// square matrices, on the threads in use.  What training reaches is a share of it.  Where bf16 is
// imitated by float32 products, the peak is that of float32.  By the context's clock.
ProductPeak product_peak(Precision precision, const RunContext& context);

}  // namespace kelvin
