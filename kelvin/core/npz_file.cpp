#include "kelvin/core/npz_file.h"

#include <zlib.h>

#include <algorithm>
#include <string_view>

#include "kelvin/core/byte_reader.h"
#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/zip_file.h"

namespace kelvin {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";

std::string inflated(std::string_view packed, uint64_t size, const std::string& where) {
  // Deflate cannot shrink by more than about 1032 times: a larger claim is a lie.
  check(size / 1100 <= packed.size(), where, ": claims ", size, " bytes out of ", packed.size());
  std::string bytes(size, '\0');
  z_stream stream{};
  check(inflateInit2(&stream, -MAX_WBITS) == Z_OK, where, ": zlib does not start");
  int result = Z_OK;
  uint64_t read = 0;
  uint64_t written = 0;
  constexpr uint64_t kPiece = 1u << 30;  // zlib counts in 32 bits
  while (result == Z_OK) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + read));
    stream.avail_in = static_cast<uInt>(std::min<uint64_t>(packed.size() - read, kPiece));
    stream.next_out = reinterpret_cast<Bytef*>(bytes.data() + written);
    stream.avail_out = static_cast<uInt>(std::min<uint64_t>(size - written, kPiece));
    const auto in_before = stream.avail_in;
    const auto out_before = stream.avail_out;
    result = inflate(&stream, Z_NO_FLUSH);
    read += in_before - stream.avail_in;
    written += out_before - stream.avail_out;
    if (in_before == stream.avail_in && out_before == stream.avail_out) break;
  }
  inflateEnd(&stream);
  check(result == Z_STREAM_END && written == size, where, ": its compressed data is damaged");
  return bytes;
}

// The text between `before` and `after` in an npy header, which is a Python literal.
std::string_view between(std::string_view text, std::string_view before, char after,
                         const std::string& where) {
  const auto begin = text.find(before);
  check(begin != std::string_view::npos, where, ": npy header has no ", before);
  const auto rest = text.substr(begin + before.size());
  const auto end = rest.find(after);
  check(end != std::string_view::npos, where, ": npy header is cut off");
  return rest.substr(0, end);
}

std::vector<int64_t> parse_shape(std::string_view text, const std::string& where) {
  std::vector<int64_t> shape;
  int64_t size = -1;
  bool is_after_space = false;
  for (const char letter : text) {
    if (letter >= '0' && letter <= '9') {
      check(size < 0 || !is_after_space, where, ": npy shape is malformed: (", text, ")");
      size = std::max<int64_t>(size, 0) * 10 + (letter - '0');
      check(size < (int64_t{1} << 40), where, ": npy shape is too large");
    } else if (letter == ',') {
      check(size >= 0, where, ": npy shape is malformed: (", text, ")");
      shape.push_back(size);
      size = -1;
    } else {
      check(letter == ' ', where, ": npy shape is malformed: (", text, ")");
    }
    is_after_space = letter == ' ';
  }
  if (size >= 0) shape.push_back(size);
  return shape;
}

size_t element_bytes(const std::string& dtype, const std::string& where) {
  for (const char* known : {"f4", "f8", "i4", "i8", "u1"}) {
    if (dtype == known) return static_cast<size_t>(dtype[1] - '0');
  }
  check(false, where, ": dtype must be one of f4, f8, i4, i8, u1, got '", dtype, "'");
  return 0;
}

Array parse_npy(const std::string& bytes, const std::string& where) {
  const ByteReader reader(bytes, where);
  check(reader.part(0, 8).starts_with(kNpyMagic), where, ": is not an npy array");
  const bool is_version_1 = bytes[6] == 1;
  const uint64_t length = is_version_1 ? reader.number<uint16_t>(8) : reader.number<uint32_t>(8);
  const uint64_t header_offset = is_version_1 ? 10 : 12;
  const auto header = reader.part(header_offset, length);

  Array array;
  auto dtype = between(header, "'descr': '", '\'', where);
  check(!dtype.empty() && dtype[0] != '>', where, ": big-endian arrays are not supported");
  if (dtype[0] == '<' || dtype[0] == '|' || dtype[0] == '=') dtype.remove_prefix(1);
  array.dtype = dtype;
  check(between(header, "'fortran_order': ", ',', where) == "False", where,
        ": must be in C order, is in Fortran order");
  array.shape = parse_shape(between(header, "'shape': (", ')', where), where);

  auto expected = static_cast<int64_t>(element_bytes(array.dtype, where));
  for (const auto size : array.shape) {
    check(!__builtin_mul_overflow(expected, size, &expected), where, ": npy shape is too large");
  }
  const auto data = header_offset + length;
  check(bytes.size() - data == static_cast<uint64_t>(expected), where, ": shape needs ", expected,
        " bytes of data, has ", bytes.size() - data);
  array.bytes = bytes.substr(data);
  return array;
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
  std::string header = "{'descr': '" + std::string(element == 1 ? "|" : "<") + array.dtype +
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
  const auto file = read_file(path);
  const ByteReader reader(file, path.string());
  Arrays arrays;
  for (const auto& member : zip_members(reader, "an npz file")) {
    auto name = std::string(member.name);
    const auto where = path.string() + ": '" + name + "'";
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    if (!is_wanted(name)) continue;
    check(member.packed_size < 0xffffffff && member.size < 0xffffffff, where,
          ": members of 4 GiB and more are not supported");
    const auto packed = packed_bytes(reader, member, where);
    check(member.method == kZipStored || member.method == kZipDeflated, where,
          ": must be stored or deflated, has zip method ", member.method);
    check(member.method == kZipDeflated || member.packed_size == member.size, where,
          ": its sizes disagree");
    const auto bytes =
        member.method == kZipStored ? std::string(packed) : inflated(packed, member.size, where);
    check_zip_crc(bytes, member, where);
    arrays[name] = parse_npy(bytes, where);
  }
  return arrays;
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
  put<uint16_t>(file, 0);
  write_file_atomically(path, file);
}

}  // namespace kelvin
