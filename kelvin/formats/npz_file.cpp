#include "kelvin/formats/npz_file.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/text.h"
#include "kelvin/formats/byte_reader.h"
#include "kelvin/formats/zip_file.h"
#include "kelvin/formats/zip_member_bytes.h"

namespace kelvin {
namespace {

// The comment of what we write, by which it is known again.
constexpr std::string_view kNpzWriter = "kelvin";
constexpr std::string_view kNpyMagic = "\x93NUMPY";

// The text between `before` and `after` in an npy header, which is a Python literal.
std::string_view between(std::string_view text, std::string_view before, char after,
                         const std::string& where) {
  const auto begin = text.find(before);
  check(begin != std::string_view::npos, where, ": npy header has no ", before,
        before.ends_with('\'') ? "...', the name of one type of number" : "");
  const auto rest = text.substr(begin + before.size());
  const auto end = rest.find(after);
  check(end != std::string_view::npos, where, ": npy header is cut off");
  return rest.substr(0, end);
}

std::vector<int64_t> parse_shape(std::string_view text, const std::string& where) {
  std::vector<int64_t> shape;
  int64_t size = -1;
  bool is_ended = false;  // no more digits of this size
  for (const char letter : text) {
    if (letter >= '0' && letter <= '9') {
      check(size < 0 || !is_ended, where, ": npy shape is malformed: (", shown_text(text), ")");
      size = std::max<int64_t>(size, 0) * 10 + (letter - '0');
      check(size < (int64_t{1} << 40), where, ": npy shape is too large");
    } else if (letter == ',') {
      check(size >= 0, where, ": npy shape is malformed: (", shown_text(text), ")");
      shape.push_back(size);
      size = -1;
    } else {
      const bool is_of_python2 = letter == 'L' && size >= 0 && !is_ended;  // writes 10L
      check(letter == ' ' || is_of_python2, where, ": npy shape is malformed: (", shown_text(text),
            ")");
    }
    is_ended = letter < '0' || letter > '9';
  }
  if (size >= 0) shape.push_back(size);
  constexpr size_t kMostAxes = 64;  // as in NumPy and PyTorch
  check(shape.size() <= kMostAxes, where, ": npy shape must have at most ", kMostAxes,
        " axes, has ", shape.size());
  return shape;
}

constexpr std::string_view kBfloat16 = "bf16";

size_t element_bytes(const std::string& dtype, const std::string& where) {
  for (const char* known :
       {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"}) {
    if (dtype == known) return static_cast<size_t>(dtype[1] - '0');
  }
  check(dtype == kBfloat16, where,
        ": dtype must be one of f2, f4, f8, i1, i2, i4, i8, u1, u2, u4, ",
        "u8, b1, or V2 for bfloat16, got '", shown_text(dtype), "'");
  return 2;
}

// What stands before the elements of an npy.
struct NpyHeader {
  Array array;  // without its elements
  bool is_big_endian = false;
  bool is_fortran_order = false;
  uint64_t element = 1;  // bytes
  uint64_t bytes = 0;    // of all elements
};

NpyHeader parse_npy_header(std::string_view header, const std::string& where) {
  NpyHeader npy;
  auto dtype = between(header, "'descr': '", '\'', where);
  check(!dtype.empty(), where, ": npy header names no dtype");
  npy.is_big_endian = dtype[0] == '>';
  if (std::string_view("<>|=").find(dtype[0]) != std::string_view::npos) dtype.remove_prefix(1);
  npy.array.dtype = dtype == "V2" || dtype == "bfloat16" ? kBfloat16 : dtype;
  const auto order = between(header, "'fortran_order': ", ',', where);
  check(order == "True" || order == "False", where,
        ": npy header must say True or False of fortran_order, says '", shown_text(order), "'");
  npy.is_fortran_order = order == "True";
  npy.array.shape = parse_shape(between(header, "'shape': (", ')', where), where);
  npy.element = element_bytes(npy.array.dtype, where);
  auto bytes = static_cast<int64_t>(npy.element);
  int64_t extent = bytes;  // must not overflow even if a size of 0 leaves none
  for (const auto size : npy.array.shape) {
    check(!__builtin_mul_overflow(extent, std::max<int64_t>(size, 1), &extent), where,
          ": npy shape is too large");
    bytes *= size;
  }
  npy.bytes = static_cast<uint64_t>(bytes);
  return npy;
}

// Leaves `member` at the first of the elements.
NpyHeader take_npy_header(ZipMemberBytes& member, const std::string& where) {
  constexpr uint64_t kMostHeader = 1 << 20;
  const auto begin = member.take(std::min<uint64_t>(member.left(), 8));
  check(begin.size() == 8 && begin.starts_with(kNpyMagic), where, ": is not an npy array");
  const auto length_bytes = member.take(begin[6] == 1 ? 2 : 4);
  uint64_t length = 0;
  std::memcpy(&length, length_bytes.data(), length_bytes.size());
  check(length <= kMostHeader, where, ": npy header must have at most ", kMostHeader,
        " bytes, claims ", length);
  auto npy = parse_npy_header(member.take(length), where);
  check(member.left() == npy.bytes, where, ": shape needs ", npy.bytes, " bytes of data, has ",
        member.left());
  return npy;
}

// Elements of another order of axes or bytes, one after the other as our arrays have them.
template <size_t kBytes>
std::string in_our_order(const NpyHeader& npy, const std::string& elements) {
  const auto& shape = npy.array.shape;
  std::vector<uint64_t> strides(shape.size());  // in elements
  uint64_t stride = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const size_t axis = npy.is_fortran_order ? i : shape.size() - 1 - i;
    strides[axis] = stride;
    stride *= static_cast<uint64_t>(shape[axis]);
  }
  std::string ours(elements.size(), '\0');
  std::vector<int64_t> index(shape.size(), 0);
  uint64_t from = 0;
  for (size_t to = 0; to < ours.size(); to += kBytes) {
    std::memcpy(ours.data() + to, elements.data() + from * kBytes, kBytes);
    if (npy.is_big_endian) std::reverse(ours.data() + to, ours.data() + to + kBytes);
    for (size_t axis = shape.size(); axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < shape[axis]) break;
      from -= strides[axis] * static_cast<uint64_t>(shape[axis]);
      index[axis] = 0;
    }
  }
  return ours;
}

Array take_npy(ZipMemberBytes& member, const std::string& where,
               const std::function<void(const Array&)>& check_header) {
  auto npy = take_npy_header(member, where);
  check_header(npy.array);
  auto elements = member.take(npy.bytes);
  member.expect_end();
  const bool is_ours = (!npy.is_big_endian || npy.element == 1) &&
                       (!npy.is_fortran_order || npy.array.shape.size() < 2);
  if (!is_ours) {
    switch (npy.element) {
      case 1:
        elements = in_our_order<1>(npy, elements);
        break;
      case 2:
        elements = in_our_order<2>(npy, elements);
        break;
      case 4:
        elements = in_our_order<4>(npy, elements);
        break;
      default:
        elements = in_our_order<8>(npy, elements);
    }
  }
  // A C++ bool that is neither is undefined behaviour.
  check(npy.array.dtype != "b1" || std::all_of(elements.begin(), elements.end(),
                                               [](char byte) { return byte == 0 || byte == 1; }),
        where, ": booleans must be 0 or 1");
  npy.array.bytes = std::move(elements);
  return std::move(npy.array);
}

std::string npy_of(const Array& array, const std::string& where) {
  std::string shape;
  int64_t elements = 1;
  for (const auto size : array.shape) {
    shape += std::to_string(size) + ",";
    elements *= size;
  }
  const auto element = element_bytes(array.dtype, where);
  check(array.bytes.size() == element * static_cast<uint64_t>(elements), where, ": shape needs ",
        element * static_cast<uint64_t>(elements), " bytes, got ", array.bytes.size());
  std::string header = "{'descr': '" + std::string(element == 1 ? "|" : "<") +
                       (array.dtype == kBfloat16 ? "V2" : array.dtype) +
                       "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string npy(kNpyMagic);
  npy += '\x01';
  npy += '\x00';
  npy += static_cast<char>(header.size() & 0xff);
  npy += static_cast<char>(header.size() >> 8);
  return npy + header + array.bytes;
}

template <class Number>
void put(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(Number));
}

// What local and central headers have in common.
void put_member(std::string& bytes, const std::string& name, uint32_t crc, uint32_t size) {
  put<uint16_t>(bytes, 20);  // version needed
  put<uint16_t>(bytes, 0);   // flags
  put<uint16_t>(bytes, kZipStored);
  put<uint16_t>(bytes, 0);     // time
  put<uint16_t>(bytes, 0x21);  // date: 1 January 1980, so that equal arrays give equal bytes
  put<uint32_t>(bytes, crc);
  put<uint32_t>(bytes, size);
  put<uint32_t>(bytes, size);
  put<uint16_t>(bytes, static_cast<uint16_t>(name.size()));
  put<uint16_t>(bytes, 0);  // extra
}

// How the bytes of a member lie in the file, which must be one of the ways we know.
void check_member(const ZipMember& member, const std::string& where) {
  check(member.packed_size < 0xffffffff && member.size < 0xffffffff, where,
        ": members of 4 GiB and more are not supported");
  check(!member.is_encrypted, where, ": must not be encrypted");
  check(member.method == kZipStored || member.method == kZipDeflated, where,
        ": must be stored or deflated, has zip method ", member.method);
  check(member.method == kZipDeflated || member.packed_size == member.size, where,
        ": its sizes disagree");
}

Arrays read_members(const ByteReader& reader,
                    const std::function<bool(const std::string&)>& is_wanted,
                    const std::function<void(const std::string&, const Array&)>& check_header) {
  Arrays arrays;
  for (const auto& member : zip_members(reader, "an npz file")) {
    auto name = std::string(member.name);
    const auto where = reader.where() + ": '" + shown_text(name) + "'";
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    if (!is_wanted(name)) continue;
    check_member(member, where);
    const auto packed = packed_bytes(reader, member, where);
    // Before its header is believed, where that needs no unpacking.
    if (member.method == kZipStored) check_zip_crc(packed, member, where);
    ZipMemberBytes bytes(packed, member, where);
    auto array = take_npy(bytes, where, [&](const Array& header) { check_header(name, header); });
    check(member.method == kZipStored || bytes.crc() == member.crc, where,
          ": its checksum is wrong");
    check(arrays.emplace(name, std::move(array)).second, where, ": is there twice");
  }
  return arrays;
}

}  // namespace

int64_t Array::size() const {
  int64_t count = 1;
  for (const auto length : shape) count *= length;
  return count;
}

Arrays read_npz(const std::filesystem::path& path, const std::set<std::string>& wanted) {
  return read_npz(path,
                  [&](const std::string& name) { return wanted.empty() || wanted.contains(name); });
}

Arrays read_npz(const std::filesystem::path& path,
                const std::function<bool(const std::string&)>& is_wanted) {
  return read_npz(path, is_wanted, [](const std::string&, const Array&) {});
}

Arrays read_npz(const std::filesystem::path& path,
                const std::function<bool(const std::string&)>& is_wanted,
                const std::function<void(const std::string&, const Array&)>& check_header) {
  return read_members(ByteReader(path), is_wanted, check_header);
}

Arrays parse_npz(std::string_view file, const std::string& where) {
  return read_members(
      ByteReader(file, where), [](const std::string&) { return true; },
      [](const std::string&, const Array&) {});
}

void write_npz(const std::filesystem::path& path, const Arrays& arrays) {
  std::string file;
  std::string central;
  for (const auto& [key, array] : arrays) {
    const auto where = path.string() + ": '" + key + "'";
    const auto npy = npy_of(array, where);
    check(file.size() + npy.size() < 0xffffffff, where, ": an npz of 4 GiB is not supported");
    const auto name = key + ".npy";
    const auto crc =
        static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(npy.data()), npy.size()));
    const auto offset = static_cast<uint32_t>(file.size());
    const auto size = static_cast<uint32_t>(npy.size());

    put<uint32_t>(file, kZipLocalHeader);
    put_member(file, name, crc, size);
    file += name + npy;

    put<uint32_t>(central, kZipCentralHeader);
    put<uint16_t>(central, 20);  // version made by
    put_member(central, name, crc, size);
    put<uint16_t>(central, 0);  // comment
    put<uint16_t>(central, 0);  // disk
    put<uint16_t>(central, 0);  // internal attributes
    put<uint32_t>(central, 0);  // external attributes
    put<uint32_t>(central, offset);
    central += name;
  }
  const auto central_offset = static_cast<uint32_t>(file.size());
  file += central;
  put<uint32_t>(file, kZipEnd);
  put<uint16_t>(file, 0);
  put<uint16_t>(file, 0);
  put<uint16_t>(file, static_cast<uint16_t>(arrays.size()));
  put<uint16_t>(file, static_cast<uint16_t>(arrays.size()));
  put<uint32_t>(file, static_cast<uint32_t>(central.size()));
  put<uint32_t>(file, central_offset);
  put<uint16_t>(file, static_cast<uint16_t>(kNpzWriter.size()));
  file += kNpzWriter;
  write_file_atomically(path, file);
}

}  // namespace kelvin
