#pragma once

#include <filesystem>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/math/named_tensors.h"
#include "kelvin/runs/run_lock.h"
#include "kelvin/runs/scores_file.h"

namespace kelvin {

// Readings, curves and scores into a run folder, beside what it holds.
void store_in_run(const std::filesystem::path& run, const Readings& readings,
                  const NamedTensors& curves, const std::vector<Scores>& scores = {});

// The lock of a run that readings will be stored in after minutes of work.  An Error before them if
// the folder cannot be written or what it holds cannot be read.
RunLock lock_to_store(const std::filesystem::path& run);

}  // namespace kelvin
