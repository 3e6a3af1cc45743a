#pragma once

#include <torch/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/formats/npz_file.h"
#include "kelvin/ops/tensors.h"
#include "kelvin/runs/run_folder.h"
#include "kelvin/runs/scores_file.h"

namespace kelvin {

// Readings, curves and scores into a run folder, beside what it holds.
void store_in_run(const std::filesystem::path& run, const Readings& readings,
                  const NamedTensors& curves, const std::vector<Scores>& scores = {});

// The lock of a run that readings will be stored in after minutes of work.  An Error before them if
// the folder cannot be written or what it holds cannot be read.
RunLock lock_to_store(const std::filesystem::path& run);

// Adds arrays to an npz, which is made if it is not there; those of the same name are replaced.
void add_curves(const std::filesystem::path& npz, const NamedTensors& curves);

// A new npz of them alone, in place of what may be there.
void write_curves(const std::filesystem::path& npz, const NamedTensors& curves);

// Tensors as NumPy arrays and back; both copy.  PyTorch has no whole numbers without a sign above
// one byte: those of two bytes become int32, of four and eight int64, exactly; one that int64 does
// not hold is an Error that begins with `where`.
Array array_of(const torch::Tensor& tensor);
torch::Tensor tensor_of(const Array& array, const std::string& where = "tensor_of");

}  // namespace kelvin
