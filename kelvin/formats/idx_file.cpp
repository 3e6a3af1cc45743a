#include "kelvin/formats/idx_file.h"

#include <iomanip>
#include <sstream>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

constexpr uint32_t kImages = 0x803;
constexpr uint32_t kLabels = 0x801;
constexpr size_t kNumberBytes = 4;

uint32_t idx_number_at(std::string_view bytes, size_t offset) {
  uint32_t number = 0;
  for (const char byte : bytes.substr(offset, kNumberBytes)) {
    number = (number << 8) | static_cast<uint8_t>(byte);
  }
  return number;
}

std::string hex(uint32_t number) {
  std::ostringstream text;
  text << "0x" << std::hex << std::setw(8) << std::setfill('0') << number;
  return text.str();
}

// The sizes after the magic number; the file must have exactly the bytes they ask for.
std::vector<int64_t> checked_sizes(std::string_view bytes, const std::string& where, uint32_t magic,
                                   size_t rank) {
  const auto head = kNumberBytes * (1 + rank);
  check(bytes.size() >= head, where, ": cut off: an idx head has ", head, " bytes, the file has ",
        bytes.size());
  check(idx_number_at(bytes, 0) == magic, where, ": byte 0: magic number must be ", hex(magic),
        ", is ", hex(idx_number_at(bytes, 0)));
  std::vector<int64_t> sizes;
  const auto present = static_cast<int64_t>(bytes.size() - head);
  int64_t needed = 1;
  for (size_t axis = 0; axis < rank; ++axis) {
    const auto offset = kNumberBytes * (1 + axis);
    const int64_t size = idx_number_at(bytes, offset);
    check(size > 0, where, ": byte ", offset, ": size must be positive, is 0");
    // Against the file at each step, so that no product overflows.
    check(size <= present / needed, where, ": byte ", offset, ": sizes need more than the ",
          present, " bytes that follow the head");
    needed *= size;
    sizes.push_back(size);
  }
  check(needed == present, where, ": sizes need ", needed, " bytes after the head, the file has ",
        present);
  return sizes;
}

}  // namespace

RawImages parse_idx_images(std::string_view bytes, const std::string& where) {
  const auto sizes = checked_sizes(bytes, where, kImages, 3);
  const auto* head = reinterpret_cast<const uint8_t*>(bytes.data());
  return {.channels = 1,
          .height = sizes.at(1),
          .width = sizes.at(2),
          .pixels = {head + 4 * kNumberBytes, head + bytes.size()}};
}

std::vector<int64_t> parse_idx_labels(std::string_view bytes, const std::string& where,
                                      int64_t classes) {
  const auto count = checked_sizes(bytes, where, kLabels, 1).at(0);
  std::vector<int64_t> labels;
  labels.reserve(static_cast<size_t>(count));
  for (size_t offset = 2 * kNumberBytes; offset < bytes.size(); ++offset) {
    const int64_t label = static_cast<uint8_t>(bytes.at(offset));
    check(label < classes, where, ": byte ", offset, ": label must be below ", classes, ", is ",
          label);
    labels.push_back(label);
  }
  return labels;
}

}  // namespace kelvin
