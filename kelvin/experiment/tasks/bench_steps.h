#pragma once

#include "kelvin/data/dataset.h"
#include "kelvin/experiment/compute_api.h"
#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/model/precision.h"

namespace kelvin {

// Batches in one epoch of a bench, and how many of them go into its start file.
inline constexpr int64_t kBenchBatches = 32;
inline constexpr int64_t kSharedBatches = 8;

// Random bytes in the shape, and random labels among the classes, of the dataset that the settings
// name: its own images are not needed for speed, nor read.
Dataset bench_dataset(const RunSettings& settings);

// Trains on such images by the loop that all runs use, with batches made beside it, until the
// request wants no more steps.  The clock stands still between them.  The start file has the
// network's tensors as "weights/NAME", and "images" (bytes, to be divided by 127.5, minus 1) and
// "labels" of the first batches in order.
void bench_steps(const StepBenchRequest& request, const RunContext& context);

// How fast this machine multiplies at best, as LibTorch does it: the fastest of some products of
// square matrices, on the threads in use.  What training reaches is a share of it.  Where bf16 is
// emulated by float32 products, the peak is that of float32.  By the context's clock.
PeakGemm peak_gemm(Precision precision, const RunContext& context);

}  // namespace kelvin
