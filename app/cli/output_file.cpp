#include "app/cli/output_file.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

constexpr std::streamoff kNearBeginning = 4096;

bool has_mark(const fs::path& path, std::string_view mark) {
  std::ifstream file(path, std::ios::binary);
  std::string head(kNearBeginning, '\0');
  file.read(head.data(), kNearBeginning);
  head.resize(static_cast<size_t>(file.gcount()));
  if (head.find(mark) != std::string::npos) return true;
  file.clear();
  const auto length = static_cast<std::streamoff>(mark.size());
  std::string tail(mark.size(), '\0');
  file.seekg(-length, std::ios::end);
  file.read(tail.data(), length);
  return tail == mark;
}

}  // namespace

void check_replaceable(const fs::path& path, std::string_view mark) {
  std::error_code ignored;
  const auto status = fs::status(path, ignored);
  if (!fs::exists(status)) return;
  check(!fs::is_directory(status), path.string(), ": is a folder, must be a file");
  const bool is_empty = fs::is_regular_file(status) && fs::file_size(path, ignored) == 0;
  check(!fs::is_regular_file(status) || is_empty || has_mark(path, mark), path.string(),
        ": exists, and kelvin did not write it as what it is to become; move it away, or name "
        "another file");
}

void check_output_file(const fs::path& path, std::string_view extension, std::string_view mark) {
  const auto folder = fs::absolute(path).parent_path();
  check(path.string().ends_with(extension), "--output: must end in ", extension, ", got '",
        path.string(), "'");
  check(fs::is_directory(folder), "--output: there is no folder ", folder.string());
  check_replaceable(path, mark);
}

void check_scores_folder(const fs::path& folder) {
  std::error_code ignored;
  check(!fs::exists(folder, ignored) || fs::is_directory(folder, ignored),
        "--output: must be a folder, got ", folder.string());
  for (fs::directory_iterator entry(folder, ignored); !ignored && entry != fs::directory_iterator();
       entry.increment(ignored)) {
    const auto name = entry->path().filename().string();
    const bool may_be_replaced = name.find('@') != std::string::npos && name.ends_with(".csv");
    if (may_be_replaced) check_replaceable(entry->path(), kMarkOfScores);
  }
}

}  // namespace kelvin
