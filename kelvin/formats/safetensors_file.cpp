#include "kelvin/formats/safetensors_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/core/crc32c.h"
#include "kelvin/core/shown_text.h"
#include "kelvin/formats/safetensors_header.h"
#include "kelvin/formats/stored_tensor_checks.h"

namespace kelvin {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMostHeaderBytes = 100'000'000;  // as in the reference implementation
constexpr std::string_view kMetadata = "__metadata__";

// Header and data of a file.
struct SafetensorsParts {
  std::string_view header;
  std::string_view data;
};

SafetensorsParts parts_of(std::string_view file, const std::string& where) {
  check(file.size() >= kLengthBytes, where, ": too short for a safetensors file: ", file.size(),
        " bytes");
  uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  check(length >= 2 && length <= kMostHeaderBytes && length <= file.size() - kLengthBytes, where,
        ": header length ", length, " does not fit the file");
  return {.header = file.substr(kLengthBytes, length), .data = file.substr(kLengthBytes + length)};
}

// The order of their bytes; empty ones stay as the header has them.
void sort_by_place(std::vector<SafetensorsEntry>& entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.offsets < b.offsets; });
}

std::vector<int64_t> shape_of(const SafetensorsEntry& entry, const std::string& where) {
  constexpr uint64_t kMostSize = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> shape;
  shape.reserve(entry.shape.size());
  for (const auto size : entry.shape) {
    check(size <= kMostSize, where, ": shape is too large");
    shape.push_back(static_cast<int64_t>(size));
  }
  return shape;
}

// Checks all that the header says about a tensor, which must begin where the one before it ended.
StoredTensor tensor_of(SafetensorsEntry entry, std::string_view data, uint64_t& covered,
                       const std::string& file) {
  const auto where = file + ": '" + shown_text(entry.name) + "'";
  StoredTensor tensor{.dtype = std::move(entry.dtype), .shape = shape_of(entry, where)};
  const auto needed = stored_tensor_bytes(tensor.dtype, tensor.shape, where);
  const auto& offsets = entry.offsets;
  check(offsets.size() == 2 && offsets[0] <= offsets[1] && offsets[1] <= data.size(), where,
        ": data_offsets lie outside of the file");
  const auto begin = offsets[0];
  const auto size = offsets[1] - begin;
  check(needed == size, where, ": shape needs ", needed, " bytes, data_offsets have ", size);
  check(begin == covered, file, ": there is a hole or an overlap at byte ",
        std::min(begin, covered), " of the data");
  covered += size;
  tensor.name = std::move(entry.name);
  tensor.bytes = data.substr(begin, size);
  check_stored_tensor(tensor, where);
  return tensor;
}

constexpr const char* kWriter = "safetensors_bytes";

void check_fits_header(uint64_t bytes) {
  check(bytes <= kMostHeaderBytes, kWriter, ": header must have at most ", kMostHeaderBytes,
        " bytes, has more");
}

std::string json_text(const std::string& text) {
  check_fits_header(text.size());
  check(is_utf8(text), kWriter, ": names and metadata must be in UTF-8, '", shown_text(text),
        "' is not");
  return nlohmann::json(text).dump();
}

std::string json_list(const auto& numbers) {
  std::string text;
  for (const auto number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return "[" + text + "]";
}

// `"__metadata__":{...}`, or nothing.
std::string metadata_entry(const StoredTensors& tensors) {
  std::string texts;
  for (const auto& [key, text] : tensors.metadata) {
    texts += texts.empty() ? "" : ",";
    texts += json_text(key) + ":" + json_text(text);
  }
  return texts.empty() ? "" : "\"" + std::string(kMetadata) + "\":{" + texts + "}";
}

std::string header_of(const StoredTensors& tensors) {
  auto header = metadata_entry(tensors);
  std::set<std::string_view> names = {kMetadata};
  uint64_t begin = 0;
  for (const auto& tensor : tensors.tensors) {
    const auto where = kWriter + (": '" + shown_text(tensor.name) + "'");
    check(names.insert(tensor.name).second, where, ": the name is taken");
    check_stored_tensor(tensor, where);
    const std::vector<uint64_t> offsets = {begin, begin + tensor.bytes.size()};
    header += header.empty() ? "" : ",";
    header += json_text(tensor.name) + R"(:{"dtype":")" + tensor.dtype + R"(","shape":)" +
              json_list(tensor.shape) + R"(,"data_offsets":)" + json_list(offsets) + "}";
    begin = offsets[1];
  }
  header = "{" + header + "}";
  header.append((kLengthBytes - header.size() % kLengthBytes) % kLengthBytes, ' ');
  check_fits_header(header.size());
  return header;
}

}  // namespace

StoredTensors parse_safetensors(std::string file, const std::string& where) {
  StoredTensors result;
  result.file = std::make_shared<const std::string>(std::move(file));
  const auto [text, data] = parts_of(*result.file, where);
  auto header = parse_safetensors_header(text, where);
  result.metadata = std::move(header.metadata);
  sort_by_place(header.entries);
  result.tensors.reserve(header.entries.size());
  uint64_t covered = 0;
  for (auto& entry : header.entries) {
    result.tensors.push_back(tensor_of(std::move(entry), data, covered, where));
  }
  check(covered == data.size(), where, ": tensors cover ", covered, " of ", data.size(), " bytes");
  if (const auto sum = result.metadata.find(kChecksumKey); sum != result.metadata.end()) {
    check(sum->second == checksum_text(result.tensors), where,
          ": its tensors do not have the checksum that kelvin gave them: the file is damaged, or "
          "another program changed them and kept ",
          kChecksumKey);
    result.metadata.erase(sum);
  }
  return result;
}

std::string checksum_text(const std::vector<StoredTensor>& tensors) {
  uint32_t sum = 0;
  for (const auto& tensor : tensors) sum = crc32c(tensor.bytes, sum);
  std::string digits;
  for (int shift = 28; shift >= 0; shift -= 4) {
    digits += "0123456789abcdef"[(sum >> static_cast<unsigned>(shift)) & 0xf];
  }
  return digits;
}

std::string safetensors_bytes(const StoredTensors& tensors) {
  const auto header = header_of(tensors);
  const uint64_t length = header.size();
  size_t size = kLengthBytes + header.size();
  for (const auto& tensor : tensors.tensors) size += tensor.bytes.size();
  std::string file;
  file.reserve(size);  // once: growing would touch twice the memory
  file.append(reinterpret_cast<const char*>(&length), kLengthBytes);
  file += header;
  for (const auto& tensor : tensors.tensors) file += tensor.bytes;
  return file;
}

}  // namespace kelvin
