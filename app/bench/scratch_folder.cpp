#include "app/bench/scratch_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "kelvin/core/check.h"

namespace kelvin {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder() {
  auto pattern = (fs::temp_directory_path() / "kelvin-bench-XXXXXX").string();
  check(::mkdtemp(pattern.data()) != nullptr, pattern,
        ": cannot make a folder: ", std::strerror(errno));
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace kelvin
