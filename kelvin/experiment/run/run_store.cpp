#include "kelvin/experiment/run/run_store.h"

#include <torch/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/formats/npz_file.h"
#include "kelvin/runs/readings_file.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

// Whatever store_in_run() would have to read or replace.
void check_can_store(const fs::path& run) {
  load_readings(run);
  const auto curves = run / "curves.npz";
  if (fs::exists(curves)) read_npz(curves);
  const auto scores = run / "scores";
  if (!fs::exists(scores)) return;
  check(fs::is_directory(scores), scores.string(), ": is a file, must be a folder");
  check(::access(scores.c_str(), W_OK | X_OK) == 0, scores.string(),
        ": cannot be written: no right to write in it");
}

}  // namespace

void store_in_run(const fs::path& run, const Readings& readings, const NamedTensors& curves,
                  const std::vector<Scores>& scores) {
  const auto folder = RunFolder::open(run);
  folder.add_readings(readings);
  add_curves(run / "curves.npz", curves);
  for (const auto& each : scores) folder.write_scores(each);
}

RunLock lock_to_store(const fs::path& run) {
  try {
    auto lock = RunLock::take(run);
    check_can_store(run);
    return lock;
  } catch (const Error& error) {
    check(false, error.what(), "; --no-store leaves the run as it is");
    throw;
  }
}

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

namespace {

constexpr std::array<std::pair<const char*, torch::ScalarType>, 10> kTypes = {
    {{"f4", torch::kFloat32},
     {"f8", torch::kFloat64},
     {"f2", torch::kFloat16},
     {"bf16", torch::kBFloat16},
     {"i8", torch::kInt64},
     {"i4", torch::kInt32},
     {"i2", torch::kInt16},
     {"i1", torch::kInt8},
     {"u1", torch::kUInt8},
     {"b1", torch::kBool}}};

template <class Stored, class Wide>
torch::Tensor widened(const Array& array, torch::ScalarType type, const std::string& where) {
  auto tensor = torch::empty(array.shape, type);
  auto* wide = tensor.data_ptr<Wide>();
  for (int64_t i = 0; i < array.size(); ++i) {
    Stored number = 0;
    std::memcpy(&number, array.bytes.data() + static_cast<size_t>(i) * sizeof(Stored),
                sizeof(Stored));
    check(std::in_range<Wide>(number), where, ": holds ", number, ", which must be below 2^63");
    wide[i] = static_cast<Wide>(number);
  }
  return tensor;
}

}  // namespace

Array array_of(const torch::Tensor& tensor) {
  const auto values = tensor.contiguous();
  const auto* const type = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& each) {
    return each.second == values.scalar_type();
  });
  check(type != kTypes.end(), "array_of: cannot store tensors of type ",
        c10::toString(values.scalar_type()));
  return {.dtype = type->first,
          .shape = values.sizes().vec(),
          .bytes = {static_cast<const char*>(values.data_ptr()), values.nbytes()}};
}

torch::Tensor tensor_of(const Array& array, const std::string& where) {
  if (array.dtype == "u2") return widened<uint16_t, int32_t>(array, torch::kInt32, where);
  if (array.dtype == "u4") return widened<uint32_t, int64_t>(array, torch::kInt64, where);
  if (array.dtype == "u8") return widened<uint64_t, int64_t>(array, torch::kInt64, where);
  const auto* const type = std::find_if(
      kTypes.begin(), kTypes.end(), [&](const auto& each) { return each.first == array.dtype; });
  check(type != kTypes.end(), where, ": there are no tensors of type '", array.dtype, "'");
  auto tensor = torch::empty(array.shape, type->second);
  if (!array.bytes.empty()) {
    std::memcpy(tensor.data_ptr(), array.bytes.data(), array.bytes.size());
  }
  return tensor;
}

}  // namespace kelvin
