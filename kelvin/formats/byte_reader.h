#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "kelvin/core/check.h"

namespace kelvin {

static_assert(std::endian::native == std::endian::little, "our files are little-endian");

// A file of which parts are read when they are asked for, so that a few arrays of a large one cost
// what they are.
class FileParts {
 public:
  explicit FileParts(const std::filesystem::path& path);
  FileParts(const FileParts&) = delete;
  FileParts& operator=(const FileParts&) = delete;
  ~FileParts();

  uint64_t size() const { return size_; }

  // Bytes that lie inside of the file; they are kept as long as this is.
  std::string_view part(uint64_t offset, uint64_t length);
  // Likewise, but of a few bytes that are kept until the next call alone.
  std::string_view few(uint64_t offset, size_t length);

 private:
  std::string read(uint64_t offset, uint64_t length) const;

  std::string where_;
  int file_ = -1;
  uint64_t size_ = 0;
  std::deque<std::string> kept_;
  std::string window_;  // where few() looks first
  uint64_t window_at_ = 0;
};

// Bounds-checked little-endian reads out of a file's bytes, which must outlive it.
class ByteReader {
 public:
  ByteReader(std::string_view bytes, std::string where)
      : bytes_(bytes), size_(bytes.size()), where_(std::move(where)) {}
  // Of a file on disk, part by part.
  explicit ByteReader(const std::filesystem::path& path)
      : file_(std::make_shared<FileParts>(path)), size_(file_->size()), where_(path.string()) {}

  template <class Number>
  Number number(uint64_t offset) const {
    check_inside(offset, sizeof(Number));
    Number value;
    const auto bytes = file_ == nullptr ? bytes_.substr(offset, sizeof(Number))
                                        : file_->few(offset, sizeof(Number));
    std::memcpy(&value, bytes.data(), sizeof(Number));
    return value;
  }

  std::string_view part(uint64_t offset, uint64_t length) const {
    check_inside(offset, length);
    return file_ == nullptr ? bytes_.substr(offset, length) : file_->part(offset, length);
  }

  uint64_t size() const { return size_; }
  const std::string& where() const { return where_; }

 private:
  void check_inside(uint64_t offset, uint64_t length) const {
    check(offset <= size_ && length <= size_ - offset, where_, ": cut off: needs ", length,
          " bytes at ", offset, ", the file has ", size_);
  }

  std::string_view bytes_;
  std::shared_ptr<FileParts> file_;
  uint64_t size_ = 0;
  std::string where_;
};

}  // namespace kelvin
