#include "kelvin/model/safetensors.h"

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"

namespace kelvin {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

using Json = nlohmann::json;

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // as in the reference implementation

struct DtypeName {
  torch::ScalarType type;
  const char* name;
};
constexpr std::array kDtypes = {DtypeName{torch::kFloat32, "F32"},
                                DtypeName{torch::kFloat64, "F64"}, DtypeName{torch::kInt64, "I64"},
                                DtypeName{torch::kUInt8, "U8"}};

const char* dtype_name(torch::ScalarType type, const std::string& tensor) {
  for (const auto& dtype : kDtypes) {
    if (dtype.type == type) return dtype.name;
  }
  check(false, "write_safetensors: '", tensor, "' must be F32, F64, I64 or U8, got ",
        torch::toString(type));
  return "";
}

torch::ScalarType dtype_of(const std::string& name, const std::string& where) {
  for (const auto& dtype : kDtypes) {
    if (dtype.name == name) return dtype.type;
  }
  check(false, where, ": dtype must be F32, F64, I64 or U8, got '", name, "'");
  return torch::kFloat32;
}

using Span = std::pair<uint64_t, uint64_t>;  // begin and end

// One tensor of the header; checks all it says before any memory is taken.
torch::Tensor tensor_of(const Json& entry, std::string_view data, const std::string& where,
                        std::vector<Span>& spans) {
  const auto type = dtype_of(entry.at("dtype").get<std::string>(), where);
  const auto shape = entry.at("shape").get<std::vector<int64_t>>();
  const auto offsets = entry.at("data_offsets").get<std::vector<uint64_t>>();
  check(offsets.size() == 2 && offsets[0] <= offsets[1] && offsets[1] <= data.size(), where,
        ": data_offsets lie outside of the file");
  uint64_t bytes = torch::elementSize(type);
  int64_t stride = 1;  // must not overflow either, even if a size of 0 leaves no bytes
  for (const auto size : shape) {
    check(size >= 0, where, ": shape has a negative size");
    const bool overflows = __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes) ||
                           __builtin_mul_overflow(stride, std::max<int64_t>(size, 1), &stride);
    check(!overflows, where, ": shape is too large");
  }
  check(bytes == offsets[1] - offsets[0], where, ": shape needs ", bytes,
        " bytes, data_offsets have ", offsets[1] - offsets[0]);
  if (bytes > 0) spans.emplace_back(offsets[0], offsets[1]);
  auto tensor = torch::empty(shape, type);
  std::memcpy(tensor.data_ptr(), data.data() + offsets[0], bytes);
  return tensor;
}

void check_covers(std::vector<Span> spans, uint64_t bytes, const std::string& name) {
  std::sort(spans.begin(), spans.end());
  uint64_t covered = 0;
  for (const auto& [begin, end] : spans) {
    check(begin == covered, name, ": there is a hole or an overlap at byte ",
          std::min(begin, covered), " of the data");
    covered = end;
  }
  check(covered == bytes, name, ": tensors cover ", covered, " of ", bytes, " bytes");
}

NamedTensors tensors_of(const Model& model) {
  NamedTensors tensors;
  for (const auto& item : model.named_parameters()) tensors[item.key()] = item.value();
  for (const auto& item : model.named_buffers()) tensors[item.key()] = item.value();
  return tensors;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors) {
  Json header = Json::object();
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const auto plain = tensor.detach().cpu().contiguous();
    const auto begin = data.size();
    data.append(static_cast<const char*>(plain.data_ptr()), plain.nbytes());
    header[name] = {{"dtype", dtype_name(plain.scalar_type(), name)},
                    {"shape", plain.sizes().vec()},
                    {"data_offsets", {begin, data.size()}}};
  }
  auto text = header.dump();
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  const uint64_t length = text.size();
  std::string file(kLengthBytes, '\0');
  std::memcpy(file.data(), &length, kLengthBytes);
  write_file_atomically(path, file + text + data);
}

NamedTensors read_safetensors(const std::filesystem::path& path) {
  const auto file = read_file(path);
  const auto name = path.string();
  check(file.size() >= kLengthBytes, name, ": too short for a safetensors file: ", file.size(),
        " bytes");
  uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  check(length <= kMaxHeaderBytes && length <= file.size() - kLengthBytes, name, ": header length ",
        length, " does not fit the file");
  const auto header =
      Json::parse(file.substr(kLengthBytes, length), nullptr, /*allow_exceptions=*/false);
  check(header.is_object(), name, ": the header is not a JSON object");

  const std::string_view data = std::string_view(file).substr(kLengthBytes + length);
  NamedTensors tensors;
  std::vector<Span> spans;
  for (const auto& [key, entry] : header.items()) {
    if (key == "__metadata__") continue;
    try {
      tensors[key] = tensor_of(entry, data, name + ": '" + key + "'", spans);
    } catch (const Json::exception&) {
      check(false, name, ": '", key, "' needs dtype, shape and data_offsets");
    }
  }
  check_covers(std::move(spans), data.size(), name);
  return tensors;
}

void save_weights(const std::filesystem::path& path, const Model& model) {
  write_safetensors(path, tensors_of(model));
}

void load_weights(const std::filesystem::path& path, Model& model) {
  torch::NoGradGuard no_grad;
  const auto stored = read_safetensors(path);
  auto wanted = tensors_of(model);
  for (const auto& [name, tensor] : stored) {
    check(wanted.contains(name), path.string(), ": the model has no tensor '", name, "'");
  }
  for (auto& [name, tensor] : wanted) {
    auto found = stored.find(name);
    check(found != stored.end(), path.string(), ": has no tensor '", name, "'");
    check(found->second.sizes() == tensor.sizes(), path.string(), ": '", name, "' must be ",
          tensor.sizes(), ", got ", found->second.sizes());
    check(found->second.scalar_type() == tensor.scalar_type(), path.string(), ": '", name,
          "' must be ", torch::toString(tensor.scalar_type()), ", got ",
          torch::toString(found->second.scalar_type()));
  }
  for (auto& [name, tensor] : wanted) tensor.copy_(stored.at(name));
}

}  // namespace kelvin
