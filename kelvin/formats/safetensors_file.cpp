#include "kelvin/formats/safetensors_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/formats/crc32c.h"
#include "kelvin/formats/stored_tensors.h"

namespace kelvin {
namespace {

constexpr std::string_view kMetadata = "__metadata__";
constexpr std::array<std::string_view, 3> kFields = {"dtype", "shape", "data_offsets"};
enum Field : size_t { field_dtype, field_shape, field_offsets };

// Hears the JSON word by word, so that a name that comes twice is noticed, and anything that has no
// place in a header ends the reading before it takes memory.
class HeaderListener {
 public:
  explicit HeaderListener(const std::string& where) : where_(where) {}

  SafetensorsHeader take() { return std::move(header_); }

  // What nlohmann's reader calls, by its own names.

  bool null() { return refuse(); }
  bool boolean(bool) { return refuse(); }
  bool binary(nlohmann::json::binary_t&) { return refuse(); }

  // Only negative numbers come here.
  bool number_integer(int64_t) {
    if (place_ == Place::shape) fail(": shape has a negative size");
    return refuse();
  }

  bool number_float(double, const std::string& digits) {
    if (place_ == Place::shape || place_ == Place::offsets) {
      fail(": ", kFields.at(field_), " must hold whole numbers of 64 bits, has ",
           shown_text(digits));
    }
    return refuse();
  }

  bool number_unsigned(uint64_t number) {
    if (place_ == Place::shape) {
      header_.entries.back().shape.push_back(number);
    } else if (place_ == Place::offsets && header_.entries.back().offsets.size() < 2) {
      header_.entries.back().offsets.push_back(number);
    } else {
      return refuse();
    }
    return true;
  }

  bool string(std::string& text) {
    if (place_ == Place::metadata) {
      const auto [entry, is_new] = header_.metadata.emplace(key_, std::move(text));
      check(is_new, where_, ": __metadata__ has '", shown_text(key_), "' twice");
    } else if (place_ == Place::entry && field_ == field_dtype) {
      header_.entries.back().dtype = std::move(text);
    } else {
      return refuse();
    }
    return true;
  }

  bool start_object(size_t) {
    if (place_ == Place::start) {
      place_ = Place::names;
    } else if (place_ == Place::names && key_ == kMetadata) {
      check(!std::exchange(has_metadata_, true), where_, ": has __metadata__ twice");
      place_ = Place::metadata;
    } else if (place_ == Place::names) {
      constexpr size_t kMostName = 1024;
      check(key_.size() <= kMostName, where_, ": names must have at most ", kMostName, " bytes, '",
            shown_text(key_), "' has ", key_.size());
      header_.entries.push_back({.name = key_});
      is_seen_ = {};
      place_ = Place::entry;
    } else {
      return refuse();
    }
    return true;
  }

  bool key(std::string& text) {
    key_ = std::move(text);
    if (place_ != Place::entry) return true;
    const auto* const field = std::find(kFields.begin(), kFields.end(), key_);
    if (field == kFields.end()) {
      fail(": must have dtype, shape and data_offsets alone, has '", shown_text(key_), "'");
    }
    field_ = static_cast<size_t>(field - kFields.begin());
    if (std::exchange(is_seen_.at(field_), true)) fail(": has ", *field, " twice");
    return true;
  }

  bool end_object() {
    if (place_ == Place::entry && is_seen_ != std::array{true, true, true}) fail_entry();
    place_ = place_ == Place::names ? Place::end : Place::names;
    return true;
  }

  bool start_array(size_t) {
    if (place_ != Place::entry || field_ == field_dtype) return refuse();
    place_ = field_ == field_shape ? Place::shape : Place::offsets;
    return true;
  }

  bool end_array() {
    place_ = Place::entry;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    check(false, where_, ": the header is not a JSON object: it is malformed at byte ", position);
    return false;
  }

 private:
  enum class Place { start, names, metadata, entry, shape, offsets, end };

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    check(false, where_, ": '", shown_text(header_.entries.back().name), "'", parts...);
    __builtin_unreachable();
  }

  [[noreturn]] void fail_entry() const { fail(" needs dtype, shape and data_offsets"); }

  // For a value of a kind that has no place here.
  bool refuse() const {
    switch (place_) {
      case Place::metadata:
        check(false, where_, ": __metadata__ must hold texts, '", shown_text(key_), "' is none");
        break;
      case Place::names:
        check(key_ != kMetadata, where_, ": __metadata__ must be an object of texts");
        check(false, where_, ": '", shown_text(key_), "' needs dtype, shape and data_offsets");
        break;
      case Place::entry:
        fail(": ", kFields.at(field_), " must be ", field_ == field_dtype ? "a text" : "a list");
      case Place::shape:
        fail(": shape must be a list of sizes");
      case Place::offsets:
        fail(": data_offsets must be two places in the file");
      default:
        check(false, where_, ": the header is not a JSON object");
    }
    return false;
  }

  const std::string& where_;
  SafetensorsHeader header_;
  Place place_ = Place::start;
  std::string key_;  // the last one
  size_t field_ = field_dtype;
  std::array<bool, 3> is_seen_ = {};
  bool has_metadata_ = false;
};

std::vector<std::string_view> names_of(const std::vector<SafetensorsEntry>& entries) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const auto& entry : entries) names.emplace_back(entry.name);
  return names;
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, const std::string& where) {
  check(json.starts_with('{'), where, ": the header is not a JSON object");
  // The reader of JSON takes a zero for the end, whatever follows.
  check(json.find('\0') == std::string_view::npos, where,
        ": the header is not a JSON object: it has zero bytes");
  HeaderListener listener(where);
  nlohmann::json::sax_parse(json.begin(), json.end(), &listener);
  auto header = listener.take();
  check_names_differ(names_of(header.entries), where);
  return header;
}

namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMostHeaderBytes = 100'000'000;  // as in the reference implementation

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
