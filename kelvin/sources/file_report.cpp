#include "kelvin/sources/file_report.h"

#include "kelvin/core/check.h"
#include "kelvin/formats/gzip.h"
#include "kelvin/sources/md5_sum.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

// For packed files of which no size is published.
constexpr int64_t kMostBytes = int64_t{1} << 32;

void measure(FileReport& report, const KnownFile& file, bool is_packed) {
  if (is_packed) {
    const auto content = read_file_or_gzip(report.path, file.bytes > 0 ? file.bytes : kMostBytes);
    report.bytes = static_cast<int64_t>(content.size());
    report.md5 = md5_of(content);
  } else {
    report.md5 = md5_of_file(report.path);
    report.bytes = static_cast<int64_t>(fs::file_size(report.path));
  }
}

void compare(FileReport& report, const KnownFile& file) {
  if (file.bytes > 0) {
    check(report.bytes == file.bytes, report.path.string(), ": must have ", file.bytes,
          " bytes, has ", report.bytes);
  }
  if (!file.md5.empty()) {
    check(report.md5 == file.md5, report.path.string(), ": must have md5 ", file.md5, ", has ",
          report.md5);
  }
  report.state = file.md5.empty() ? FileState::unpublished : FileState::official;
}

}  // namespace

FileReport report_file(const KnownFile& file, StoredFormat format, const fs::path& data_folder) {
  FileReport report{.path = data_folder / file.path};
  auto packed = report.path;
  packed += ".gz";
  const bool is_packed =
      format == StoredFormat::idx && !fs::exists(report.path) && fs::exists(packed);
  if (is_packed) report.path = packed;
  if (!fs::exists(report.path)) {
    report.problem = report.path.string() + ": is missing";
    return report;
  }
  try {
    measure(report, file, is_packed);
    compare(report, file);
  } catch (const Error& error) {
    report.state = FileState::differs;
    report.problem = error.what();
  }
  return report;
}

std::vector<KnownFile> all_files(const Layout& layout) {
  auto files = layout.train_files;
  files.insert(files.end(), layout.test_files.begin(), layout.test_files.end());
  files.insert(files.end(), layout.other_files.begin(), layout.other_files.end());
  return files;
}

}  // namespace kelvin
