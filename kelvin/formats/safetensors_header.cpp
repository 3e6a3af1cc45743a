#include "kelvin/formats/safetensors_header.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/shown_text.h"
#include "kelvin/formats/stored_tensor_checks.h"

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

}  // namespace kelvin
