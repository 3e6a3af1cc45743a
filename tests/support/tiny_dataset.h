#pragma once

#include <zlib.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "kelvin/sources/known_dataset.h"
#include "kelvin/sources/md5_sum.h"

namespace kelvin {

// A dataset in MNIST's format with four training and two test images of 2 x 2 pixels in two
// classes, published like a large one.
struct TinyDataset {
  std::map<std::string, std::string> files = {};  // by plain name
  KnownDataset known = {};
};

inline const std::string kTinyFolder = "tiny/raw";

inline std::string big_endian(const std::vector<uint32_t>& numbers) {
  std::string bytes;
  for (const auto number : numbers) {
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>((number >> shift) & 0xff);
  }
  return bytes;
}

inline TinyDataset tiny_dataset() {
  std::string pixels;
  for (int i = 0; i < 24; ++i) pixels += static_cast<char>((i * 37 + 11) % 256);
  TinyDataset tiny;
  tiny.files = {{"train-images", big_endian({0x803, 4, 2, 2}) + pixels.substr(0, 16)},
                {"train-labels", big_endian({0x801, 4}) + std::string("\0\1\1\0", 4)},
                {"test-images", big_endian({0x803, 2, 2, 2}) + pixels.substr(16)},
                {"test-labels", big_endian({0x801, 2}) + std::string("\1\0", 2)}};
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < 16; ++i) {
    const double value = static_cast<uint8_t>(pixels.at(static_cast<size_t>(i))) / 255.0;
    sum += value;
    squares += value * value;
  }
  const double mean = sum / 16;
  const double std_dev = std::sqrt(squares / 16 - mean * mean);
  const auto file = [&](const std::string& name) {
    const auto& bytes = tiny.files.at(name);
    return KnownFile{kTinyFolder + "/" + name, static_cast<int64_t>(bytes.size()), md5_of(bytes)};
  };
  tiny.known = {.name = "tiny",
                .summary = "for tests",
                .channels = 1,
                .height = 2,
                .width = 2,
                .class_names = {"first", "second"},
                .mean = {mean, mean, mean},
                .std_dev = {std_dev, std_dev, std_dev},
                .train_counts = {2, 2},
                .test_counts = {1, 1},
                .layouts = {{.format = StoredFormat::idx,
                             .folder = kTinyFolder,
                             .train_files = {file("train-images"), file("train-labels")},
                             .test_files = {file("test-images"), file("test-labels")}}},
                .how_to_get = "ask somebody"};
  return tiny;
}

inline void write_to(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

// As it should lie on disk.
inline void write_tiny(const TinyDataset& tiny, const std::filesystem::path& data_folder) {
  for (const auto& [name, bytes] : tiny.files) write_to(data_folder / kTinyFolder / name, bytes);
}

inline std::string gzipped(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace kelvin
