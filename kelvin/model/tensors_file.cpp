#include "kelvin/model/tensors_file.h"

#include <torch/torch.h>

#include <array>
#include <cstring>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/text.h"
#include "kelvin/formats/safetensors_file.h"
#include "kelvin/formats/stored_tensors.h"
#include "kelvin/formats/weights_file.h"

namespace kelvin {
namespace {

struct DtypeName {
  torch::ScalarType type;
  const char* name;
};
constexpr std::array kDtypes = {
    DtypeName{torch::kFloat64, "F64"}, DtypeName{torch::kFloat32, "F32"},
    DtypeName{torch::kFloat16, "F16"}, DtypeName{torch::kBFloat16, "BF16"},
    DtypeName{torch::kInt64, "I64"},   DtypeName{torch::kInt32, "I32"},
    DtypeName{torch::kInt16, "I16"},   DtypeName{torch::kInt8, "I8"},
    DtypeName{torch::kUInt8, "U8"},    DtypeName{torch::kBool, "BOOL"}};

torch::Tensor tensor_of(const StoredTensor& stored, const std::string& where) {
  for (const auto& dtype : kDtypes) {
    if (dtype.name != stored.dtype) continue;
    auto tensor = torch::empty(stored.shape, dtype.type);
    check(tensor.nbytes() == stored.bytes.size(), where, ": '", shown_text(stored.name),
          "' must have ", tensor.nbytes(), " bytes, has ", stored.bytes.size());
    if (!stored.bytes.empty()) {
      std::memcpy(tensor.data_ptr(), stored.bytes.data(), stored.bytes.size());
    }
    return tensor;
  }
  check(false, where, ": '", shown_text(stored.name), "' has the unknown dtype '", stored.dtype,
        "'");
  return {};
}

std::string dtype_of(const torch::Tensor& tensor, const std::string& name) {
  for (const auto& dtype : kDtypes) {
    if (dtype.type == tensor.scalar_type()) return dtype.name;
  }
  check(false, "write_safetensors: '", name, "' must be of floating, integer or boolean type, is ",
        torch::toString(tensor.scalar_type()));
  return "";
}

}  // namespace

NamedTensors read_tensors(const std::filesystem::path& path) {
  const auto stored = read_weights_file(path);
  // Tensors of torch may share their bytes; each is copied here.
  constexpr uint64_t kMostTimesTheFile = 4;
  uint64_t bytes = 0;
  for (const auto& each : stored.tensors) bytes += each.bytes.size();
  check(bytes <= kMostTimesTheFile * stored.file->size(), path.string(),
        ": its tensors would take more than ", kMostTimesTheFile, " times the file");
  NamedTensors tensors;
  for (const auto& each : stored.tensors) tensors[each.name] = tensor_of(each, path.string());
  return tensors;
}

void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<torch::Tensor> rows;  // keeps the bytes alive that `stored` points at
  StoredTensors stored{.metadata = metadata};
  for (const auto& [name, tensor] : tensors) {
    rows.push_back(tensor.detach().cpu().contiguous());
    const auto& plain = rows.back();
    stored.tensors.push_back(
        {.name = name,
         .dtype = dtype_of(plain, name),
         .shape = plain.sizes().vec(),
         .bytes = {static_cast<const char*>(plain.data_ptr()), plain.nbytes()}});
  }
  stored.metadata[kChecksumKey] = checksum_text(stored.tensors);
  write_file_atomically(path, safetensors_bytes(stored));
}

}  // namespace kelvin
