#include "kelvin/experiment/curves_file.h"

#include "kelvin/core/npz_file.h"
#include "kelvin/math/tensor_arrays.h"

namespace kelvin {

void add_curves(const std::filesystem::path& npz, const NamedTensors& curves) {
  if (curves.empty()) return;
  auto arrays = std::filesystem::exists(npz) ? read_npz(npz) : Arrays();
  for (const auto& [name, tensor] : curves) arrays[name] = array_of(tensor);
  write_npz(npz, arrays);
}

void write_curves(const std::filesystem::path& npz, const NamedTensors& curves) {
  Arrays arrays;
  for (const auto& [name, tensor] : curves) arrays[name] = array_of(tensor);
  write_npz(npz, arrays);
}

}  // namespace kelvin
