#include "kelvin/formats/mat_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "kelvin/core/check.h"
#include "kelvin/formats/gzip.h"

namespace kelvin {
namespace {

static_assert(std::endian::native == std::endian::little, "the files we read are little-endian");

constexpr size_t kHeaderBytes = 128;
constexpr size_t kTagBytes = 8;
constexpr uint32_t kMatrix = 14;
constexpr uint32_t kCompressed = 15;
constexpr uint32_t kComplexFlag = 0x800;
constexpr size_t kMostMatAxes = 32;
// All arrays of a file together; SVHN's larger split has 225 MB.
constexpr int64_t kMostInflated = int64_t{1} << 30;

template <class Number>
Number mat_number_at(std::string_view bytes, size_t offset) {
  Number value;
  std::memcpy(&value, bytes.substr(offset, sizeof(Number)).data(), sizeof(Number));
  return value;
}

struct MatElement {
  uint32_t type = 0;
  std::string_view data = {};
  size_t offset = 0;  // of its tag
};

// The elements of a file or of an array, one after the other.
class Elements {
 public:
  Elements(std::string_view bytes, size_t start, const std::string& where)
      : bytes_(bytes), where_(where), at_(start) {}

  bool has_more() const { return at_ < bytes_.size(); }

  MatElement next() {
    check(bytes_.size() - at_ >= kTagBytes, where_, ": byte ", at_, ": cut off: needs ", kTagBytes,
          " bytes, has ", bytes_.size() - at_);
    MatElement element{.offset = at_};
    const auto first = mat_number_at<uint32_t>(bytes_, at_);
    // Up to four bytes lie in the tag itself, with their number in its upper half.
    const bool is_small = first >> 16 != 0;
    element.type = is_small ? first & 0xffff : first;
    const size_t length = is_small ? first >> 16 : mat_number_at<uint32_t>(bytes_, at_ + 4);
    const size_t data_at = at_ + (is_small ? 4 : kTagBytes);
    const size_t room = is_small ? 4 : bytes_.size() - data_at;
    check(length <= room, where_, ": byte ", at_, ": cut off: element needs ", length,
          " bytes, has ", room);
    element.data = bytes_.substr(data_at, length);
    at_ = is_small ? at_ + kTagBytes : data_at + length;
    return element;
  }

  // Elements of arrays begin at multiples of eight.
  void align() { at_ = std::min((at_ + 7) / 8 * 8, bytes_.size()); }

 private:
  std::string_view bytes_;
  const std::string& where_;
  size_t at_ = 0;
};

// Bytes of one number; 0 for other types.
int64_t number_bytes(uint32_t type) {
  switch (static_cast<MatType>(type)) {
    case MatType::int8:
    case MatType::uint8:
      return 1;
    case MatType::int16:
    case MatType::uint16:
      return 2;
    case MatType::int32:
    case MatType::uint32:
    case MatType::single_real:
      return 4;
    case MatType::double_real:
    case MatType::int64:
    case MatType::uint64:
      return 8;
  }
  return 0;
}

bool is_numeric_class(uint32_t array_class) { return array_class >= 6 && array_class <= 15; }

std::vector<int64_t> shape_of(const MatElement& element, const std::string& where) {
  const auto axes = element.data.size() / 4;
  check(element.type == static_cast<uint32_t>(MatType::int32) && element.data.size() % 4 == 0 &&
            axes >= 1 && axes <= kMostMatAxes,
        where, ": byte ", element.offset, ": shape of an array is malformed");
  std::vector<int64_t> shape;
  for (size_t axis = 0; axis < axes; ++axis) {
    shape.push_back(mat_number_at<int32_t>(element.data, axis * 4));
    check(shape.back() >= 0, where, ": byte ", element.offset,
          ": size of an array must not be negative, is ", shape.back());
  }
  return shape;
}

// Hands the array in `content` to `visit` if it is one of numbers.
void visit_matrix(std::string_view content, const std::string& where,
                  const std::function<void(const MatArray&)>& visit) {
  Elements parts(content, 0, where);
  const auto flags = parts.next();
  parts.align();
  check(flags.type == static_cast<uint32_t>(MatType::uint32) && flags.data.size() == 8, where,
        ": flags of an array are malformed");
  const auto bits = mat_number_at<uint32_t>(flags.data, 0);
  if (!is_numeric_class(bits & 0xff)) return;
  check((bits & kComplexFlag) == 0, where, ": array must be real, is complex");
  MatArray array;
  array.shape = shape_of(parts.next(), where);
  parts.align();
  const auto name = parts.next();
  parts.align();
  check(name.type == static_cast<uint32_t>(MatType::int8), where, ": byte ", name.offset,
        ": name of an array is malformed");
  array.name = name.data;
  const auto data = parts.next();
  auto needed = number_bytes(data.type);
  check(needed > 0, where, ": byte ", data.offset, ": array must be of numbers, is of type ",
        data.type);
  for (const auto size : array.shape) {
    check(!__builtin_mul_overflow(needed, size, &needed), where,
          ": shape of an array is too large");
  }
  check(needed == static_cast<int64_t>(data.data.size()), where, ": byte ", data.offset,
        ": shape of an array needs ", needed, " bytes, has ", data.data.size());
  array.type = static_cast<MatType>(data.type);
  array.bytes = data.data;
  visit(array);
}

void check_header(std::string_view bytes, const std::string& where) {
  check(bytes.size() >= kHeaderBytes, where, ": too short for a MAT file: ", bytes.size(),
        " bytes");
  const auto mark = bytes.substr(126, 2);
  check(mark == "IM" || mark == "MI", where, ": byte 126: is not a MAT file of version 5");
  check(mark == "IM", where, ": byte 126: MAT file must be little-endian, is big-endian");
  const int version = static_cast<uint8_t>(bytes[125]);
  check(version == 1, where, ": byte 124: MAT file must be of version 5 (1), is of ", version,
        version == 2 ? " (7.3, which is HDF5)" : "");
}

template <class Number>
std::vector<int64_t> integers_of(std::string_view bytes, const std::string& where) {
  std::vector<int64_t> integers;
  integers.reserve(bytes.size() / sizeof(Number));
  for (size_t at = 0; at < bytes.size(); at += sizeof(Number)) {
    const auto number = mat_number_at<Number>(bytes, at);
    if constexpr (std::is_floating_point_v<Number>) {
      check(std::abs(number) < Number{1e15} && number == std::trunc(number), where,
            ": must be a whole number, is ", number);
    } else if constexpr (std::is_same_v<Number, uint64_t>) {
      check(number <= static_cast<uint64_t>(INT64_MAX), where, ": number is too large: ", number);
    }
    integers.push_back(static_cast<int64_t>(number));
  }
  return integers;
}

}  // namespace

int64_t MatArray::size() const {
  int64_t count = 1;
  for (const auto length : shape) count *= length;
  return count;
}

std::vector<int64_t> MatArray::integers(const std::string& where) const {
  switch (type) {
    case MatType::int8:
      return integers_of<int8_t>(bytes, where);
    case MatType::uint8:
      return integers_of<uint8_t>(bytes, where);
    case MatType::int16:
      return integers_of<int16_t>(bytes, where);
    case MatType::uint16:
      return integers_of<uint16_t>(bytes, where);
    case MatType::int32:
      return integers_of<int32_t>(bytes, where);
    case MatType::uint32:
      return integers_of<uint32_t>(bytes, where);
    case MatType::single_real:
      return integers_of<float>(bytes, where);
    case MatType::double_real:
      return integers_of<double>(bytes, where);
    case MatType::int64:
      return integers_of<int64_t>(bytes, where);
    case MatType::uint64:
      return integers_of<uint64_t>(bytes, where);
  }
  return {};
}

void visit_mat(std::string_view bytes, const std::string& where,
               const std::function<void(const MatArray&)>& visit) {
  check_header(bytes, where);
  int64_t budget = kMostInflated;
  Elements elements(bytes, kHeaderBytes, where);
  while (elements.has_more()) {
    const auto element = elements.next();
    const auto place = where + ": element at byte " + std::to_string(element.offset);
    if (element.type == kMatrix) {
      visit_matrix(element.data, place, visit);
      continue;
    }
    check(element.type == kCompressed, place, ": must be an array, is of type ", element.type);
    const auto content = inflated(element.data, place, budget);
    budget -= static_cast<int64_t>(content.size());
    const auto inner = Elements(content, 0, place).next();
    check(inner.type == kMatrix, place, ": must hold an array, holds type ", inner.type);
    visit_matrix(inner.data, place, visit);
  }
}

}  // namespace kelvin
