#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "kelvin/core/files.h"
#include "kelvin/formats/npz_file.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/python.h"

namespace kelvin {

template <class Number>
Array array_of(const std::string& dtype, const std::vector<int64_t>& shape,
               const std::vector<Number>& numbers) {
  std::string bytes(numbers.size() * sizeof(Number), '\0');
  if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return {.dtype = dtype, .shape = shape, .bytes = bytes};
}

inline const std::string kDtypes =
    "f2, f4, f8, i1, i2, i4, i8, u1, u2, u4, u8, b1, or V2 for bfloat16";

template <class Number>
void put(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(Number));
}

template <class Number>
void put_at(std::string& bytes, size_t offset, Number number) {
  std::memcpy(bytes.data() + offset, &number, sizeof(Number));
}

inline uint32_t crc_of(const std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (const char letter : bytes) {
    crc ^= static_cast<unsigned char>(letter);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
  }
  return ~crc;
}

// A zip with one member, made by hand so that a test can put a lie into any field.
struct Zip {
  std::string content;
  uint16_t method = 0;
  std::optional<uint32_t> size = {};  // what it claims, if not the truth
  std::string name = "x.npy";

  std::string bytes() const {
    std::string member;  // what local and central headers have in common
    put<uint16_t>(member, 20);
    put<uint16_t>(member, 0);
    put<uint16_t>(member, method);
    put<uint32_t>(member, 0);
    put<uint32_t>(member, crc_of(content));
    put<uint32_t>(member, static_cast<uint32_t>(content.size()));
    put<uint32_t>(member, size.value_or(static_cast<uint32_t>(content.size())));
    put<uint16_t>(member, static_cast<uint16_t>(name.size()));
    put<uint16_t>(member, 0);
    std::string file = "PK\x03\x04" + member + name + content;
    const auto central = file.size();
    file += "PK\x01\x02";
    put<uint16_t>(file, 20);
    file += member + std::string(14, '\0') + name;  // the local header lies at 0
    const auto central_size = file.size() - central;
    file += "PK\x05\x06" + std::string(4, '\0');
    put<uint16_t>(file, 1);
    put<uint16_t>(file, 1);
    put<uint32_t>(file, static_cast<uint32_t>(central_size));
    put<uint32_t>(file, static_cast<uint32_t>(central));
    put<uint16_t>(file, 0);
    return file;
  }
};

inline std::string npy_of(const std::string& header, const std::string& data) {
  std::string npy = "\x93NUMPY\x01";
  npy += '\0';
  put<uint16_t>(npy, static_cast<uint16_t>(header.size()));
  return npy + header + data;
}

inline std::string header_of(const std::string& dtype, const std::string& shape,
                             const std::string& fortran_order = "False") {
  return "{'descr': '" + dtype + "', 'fortran_order': " + fortran_order + ", 'shape': (" + shape +
         "), }\n";
}

inline Arrays read_bytes(const std::string& bytes) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a.npz", bytes);
  return read_npz(folder / "a.npz");
}

// Why the file is refused, without its path.
inline std::string refusal_of(const std::string& bytes) {
  const auto message = error_of([&] { read_bytes(bytes); });
  const auto path = message.find("a.npz: ");
  EXPECT_NE(path, std::string::npos) << message;
  return path == std::string::npos ? message : message.substr(path + 7);
}

inline std::string refusal_of_npy(const std::string& npy) {
  return refusal_of(Zip{.content = npy}.bytes());
}

inline std::string refusal_of_shape(const std::string& shape) {
  return refusal_of_npy(npy_of(header_of("<f4", shape), ""));
}

inline std::string written(const Arrays& arrays) {
  const TemporaryFolder folder;
  write_npz(folder / "a.npz", arrays);
  return read_file(folder / "a.npz");
}

// `function` is savez or savez_compressed, `arguments` what it saves.
inline std::string saved_by_numpy(const std::string& function, const std::string& arguments) {
  const TemporaryFolder folder;
  python_output("import sys, numpy as np\nnp." + function + "(sys.argv[1], " + arguments + ")",
                {folder / "a.npz"});
  return read_file(folder / "a.npz");
}

}  // namespace kelvin
