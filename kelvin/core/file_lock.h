#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace kelvin {

// A file that one process, and one object of it, holds at a time.  It is given back and removed by
// the destructor; if the process dies, the system gives it back and the file stays behind, free.
class FileLock {
 public:
  enum class Folder { must_exist, is_made };

  // Nothing if somebody holds it; an Error if the file cannot be made.
  static std::optional<FileLock> try_take(const std::filesystem::path& path,
                                          Folder folder = Folder::must_exist);
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;

 private:
  FileLock(std::filesystem::path path, int descriptor);
  void give_back();

  std::filesystem::path path_;
  int descriptor_ = -1;
};

// Asks without taking it, so that nobody who wants it is turned away by the question.
bool is_file_locked(const std::filesystem::path& path);

// The number of the process that holds it; empty if it has not said so yet.
std::string holder_of_lock(const std::filesystem::path& path);

}  // namespace kelvin
