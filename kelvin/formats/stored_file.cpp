#include "kelvin/formats/stored_file.h"

#include <system_error>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"

namespace kelvin {

namespace fs = std::filesystem;

void check_is_file(const fs::path& path) {
  std::error_code failure;
  const auto status = fs::status(path, failure);
  check(fs::exists(status), path.string(),
        ": cannot read: ", failure ? failure.message() : "No such file or directory");
  check(!fs::is_directory(status), path.string(), ": is a folder, must be a file");
  check(fs::is_regular_file(status), path.string(), ": must be a file, is a device or a pipe");
}

std::string read_stored_file(const fs::path& path, int64_t most_bytes) {
  check_is_file(path);
  std::error_code failure;
  const auto size = fs::file_size(path, failure);
  check(!failure, path.string(), ": cannot read: ", failure.message());
  check(size <= static_cast<uint64_t>(most_bytes), path.string(), ": must have at most ",
        most_bytes, " bytes, has ", size);
  return read_file(path);
}

}  // namespace kelvin
