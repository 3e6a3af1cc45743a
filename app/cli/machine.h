#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

namespace kelvin {

inline constexpr int64_t kMostThreads = 4096;

// Cores this process may use: its affinity mask, and the quota of its container.
int64_t usable_cores();

// $OMP_NUM_THREADS if the user set it, else one per core.
int64_t default_threads();

// Settings of the process that LibTorch, OpenMP and BLAS read once, when they are loaded.
void prepare_process(int64_t threads);

// CPU model, its vector extensions, cores, memory and system, for metadata.
nlohmann::ordered_json machine_description();

}  // namespace kelvin
