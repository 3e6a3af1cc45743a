#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "kelvin/core/check.h"

namespace kelvin {

// This machine cannot take the data (a full disk, no right to write): no other place to get them
// from would help.
class DiskError : public Error {
 public:
  using Error::Error;
};

// A file that must not have been there before: neither a file nor a link in its place is written
// through.  More than `most_bytes` is an Error, so that nobody's archive fills the disk.
class NewFile {
 public:
  NewFile(const std::filesystem::path& path, int64_t most_bytes);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::string_view bytes);

  // Syncs: after it the bytes outlive a crash of the machine.
  void close();

  int64_t bytes() const { return bytes_; }

 private:
  std::filesystem::path path_;
  int64_t most_bytes_;
  int64_t bytes_ = 0;
  int descriptor_;
};

// The same for a folder's list of names.
void sync_folder(const std::filesystem::path& folder);

// Makes the folder and those above it; a DiskError if that is impossible.
void make_folders(const std::filesystem::path& folder);

// A file that grows while a download brings it, and may have begun in an earlier process.  Links
// are not followed; every failure is a DiskError.
class PartialFile {
 public:
  explicit PartialFile(const std::filesystem::path& path);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  void append(std::string_view bytes);
  void clear();
  void sync();

  int64_t bytes() const { return bytes_; }

 private:
  std::filesystem::path path_;
  int descriptor_;
  int64_t bytes_ = 0;
};

}  // namespace kelvin
