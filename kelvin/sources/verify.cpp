#include "kelvin/sources/verify.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <span>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/formats/gzip.h"
#include "kelvin/formats/image_file.h"
#include "kelvin/formats/image_folder.h"
#include "kelvin/sources/md5_sum.h"
#include "kelvin/sources/stored_dataset.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

// For packed files of which no size is published.
constexpr int64_t kMostDataBytes = int64_t{1} << 32;

void measure(FileReport& report, const KnownFile& file, bool is_packed) {
  if (is_packed) {
    const auto content =
        read_file_or_gzip(report.path, file.bytes > 0 ? file.bytes : kMostDataBytes);
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

namespace {

struct Sums {
  uint64_t values = 0;
  uint64_t squares = 0;  // of at most 2^47 pixels
};

void add(Sums& sums, std::span<const uint8_t> plane) {
  // 32 bits for one row of squares are enough up to 66051 pixels, and let the compiler use vectors.
  constexpr size_t kRow = 65536;
  for (size_t begin = 0; begin < plane.size(); begin += kRow) {
    uint32_t values = 0;
    uint32_t squares = 0;
    for (const uint32_t value : plane.subspan(begin, std::min(kRow, plane.size() - begin))) {
      values += value;
      squares += value * value;
    }
    sums.values += values;
    sums.squares += squares;
  }
}

}  // namespace

PixelStatistics pixel_statistics(const RawImages& images) {
  check(images.size() > 0, "pixel statistics: need at least one image, got none");
  const auto expected = static_cast<size_t>(images.size() * images.image_bytes());
  check(images.pixels.size() == expected && expected > 0, "pixel statistics: the shape needs ",
        expected, " bytes, got ", images.pixels.size());
  const auto channels = static_cast<size_t>(images.channels);
  const auto plane = static_cast<size_t>(images.height * images.width);
  std::vector<Sums> sums(channels);
  const std::span<const uint8_t> pixels = images.pixels;
  for (size_t i = 0; i < pixels.size() / plane; ++i) {
    add(sums.at(i % channels), pixels.subspan(i * plane, plane));
  }
  PixelStatistics statistics;
  const auto count = static_cast<uint64_t>(images.size()) * plane;
  for (const auto& [values, squares] : sums) {
    using Wide = unsigned __int128;
    const auto spread = Wide{count} * squares - Wide{values} * values;  // count^2 times variance
    const auto pixels_count = static_cast<double>(count);
    statistics.mean.push_back(static_cast<double>(values) / (255 * pixels_count));
    statistics.std_dev.push_back(std::sqrt(static_cast<double>(spread)) / (255 * pixels_count));
  }
  return statistics;
}

namespace {

namespace fs = std::filesystem;

constexpr double kTolerance = 5e-5;  // published with four digits

std::vector<int64_t> counts_of(const std::vector<int64_t>& labels, int64_t classes) {
  std::vector<int64_t> counts(static_cast<size_t>(classes));
  for (const auto label : labels) ++counts.at(static_cast<size_t>(label));
  return counts;
}

void check_counts(const SplitReport& split, const std::vector<int64_t>& published,
                  const std::vector<std::string>& class_names, const std::string& where) {
  if (published.empty()) return;
  for (size_t i = 0; i < published.size(); ++i) {
    check(split.counts.at(i) == published.at(i), where, ": the ", split.name, " split must have ",
          published.at(i), " images of class '", class_names.at(i), "', has ", split.counts.at(i));
  }
}

void check_statistics(const KnownDataset& dataset, const SplitReport& split,
                      const std::string& where) {
  const auto compare = [&](const char* what, size_t channel, double published, double found) {
    check(std::abs(found - published) <= kTolerance, where, ": the ", what, " of channel ", channel,
          " of the training pixels must be ", published, ", is ", found);
  };
  for (size_t i = 0; i < static_cast<size_t>(dataset.channels); ++i) {
    compare("mean", i, dataset.mean.at(i), split.statistics.mean.at(i));
    compare("deviation", i, dataset.std_dev.at(i), split.statistics.std_dev.at(i));
  }
}

SplitReport report_split(const KnownDataset& dataset, const fs::path& data_folder,
                         StoredSplit split) {
  const auto images = read_stored(dataset, data_folder, split);
  const bool is_train = split == StoredSplit::train;
  SplitReport report{.name = is_train ? "train" : "test",
                     .samples = images.size(),
                     .counts = counts_of(images.labels, dataset.classes())};
  if (is_train) report.statistics = pixel_statistics(images);
  return report;
}

// Empty if there is none: files that differ are all right in another container, and those that are
// not needed may be missing.
std::string problem_of(const VerifyReport& report, const Layout& layout) {
  const auto needed = layout.train_files.size() + layout.test_files.size();
  for (size_t i = 0; i < report.files.size(); ++i) {
    const auto& file = report.files.at(i);
    const bool is_needed = i < needed;
    const bool is_bad = (file.state == FileState::missing && is_needed) ||
                        (file.state == FileState::differs && !layout.md5_may_differ);
    if (is_bad) return file.problem;
  }
  return "";
}

bool are_official(const VerifyReport& report, const Layout& layout) {
  const auto needed = layout.train_files.size() + layout.test_files.size();
  return std::all_of(report.files.begin(),
                     std::next(report.files.begin(), static_cast<int64_t>(needed)),
                     [](const auto& file) { return file.state == FileState::official; });
}

void verify_files(VerifyReport& report, const KnownDataset& dataset, const Layout& layout,
                  const fs::path& data_folder) {
  for (const auto& file : all_files(layout)) {
    report.files.push_back(report_file(file, layout.format, data_folder));
  }
  if (const auto problem = problem_of(report, layout); !problem.empty()) {
    // Reading tells the place, where a checksum only tells that there is one.
    for (const auto split : {StoredSplit::train, StoredSplit::test}) {
      read_stored(dataset, data_folder, split);
    }
    check(false, problem);
  }
  report.splits.push_back(report_split(dataset, data_folder, StoredSplit::train));
  report.splits.push_back(report_split(dataset, data_folder, StoredSplit::test));
  const auto where = report.folder.string();
  check_counts(report.splits.at(0), dataset.train_counts, dataset.class_names, where);
  check_counts(report.splits.at(1), dataset.test_counts, dataset.class_names, where);
  check_statistics(dataset, report.splits.at(0), where);
  report.verdict =
      are_official(report, layout) ? DataVerdict::official : DataVerdict::equal_content;
}

// Reads every image of several splits.
class ImageReader {
 public:
  ImageReader(const std::vector<LabelledFiles>& splits, const VerifyOptions& options)
      : options_(options) {
    for (const auto& split : splits) total_ += split.size();
  }

  void read(const LabelledFiles& files) {
    for (const auto& path : files.paths) {
      const auto bytes = read_stored_file(path, kMostPictureBytes);
      const std::span<const uint8_t> view(reinterpret_cast<const uint8_t*>(bytes.data()),
                                          bytes.size());
      if (options_.thorough) {
        decode_picture(view, path.string());
      } else {
        picture_size(view, path.string());
      }
      ++done_;
      if (options_.progress) options_.progress(done_, total_);
    }
  }

 private:
  const VerifyOptions& options_;
  int64_t done_ = 0;
  int64_t total_ = 0;
};

void verify_images(VerifyReport& report, const std::vector<std::string>& names,
                   const std::vector<LabelledFiles>& splits, const VerifyOptions& options) {
  for (size_t i = 0; i < splits.size(); ++i) {
    const auto& files = splits.at(i);
    report.splits.push_back(
        {.name = names.at(i),
         .samples = files.size(),
         .counts = counts_of(files.labels, static_cast<int64_t>(files.class_names.size()))});
  }
  ImageReader reader(splits, options);
  for (const auto& files : splits) reader.read(files);
  report.verdict = DataVerdict::readable;
}

void verify_stored_images(VerifyReport& report, const KnownDataset& dataset,
                          const fs::path& data_folder, const VerifyOptions& options) {
  verify_images(report, {"train", "test"},
                {list_stored(dataset, data_folder, StoredSplit::train),
                 list_stored(dataset, data_folder, StoredSplit::test)},
                options);
  const auto where = report.folder.string();
  check_counts(report.splits.at(0), dataset.train_counts, dataset.class_names, where);
  check_counts(report.splits.at(1), dataset.test_counts, dataset.class_names, where);
}

// What is wrong with data is the result here and not a failure.
template <class Action>
void note_error(VerifyReport& report, const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    report.verdict = DataVerdict::wrong;
    report.reason = error.what();
  } catch (const fs::filesystem_error& error) {
    report.verdict = DataVerdict::wrong;
    report.reason = error.path1().string() + ": " + error.code().message();
  }
}

bool has_folder_in(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.is_directory(ignored)) return true;
  }
  return false;
}

// The splits a folder has; none if it is not divided.
std::vector<std::string> splits_in(const fs::path& folder) {
  if (!has_folder_in(folder / "train")) return {};
  std::vector<std::string> names = {"train"};
  for (const char* name : {"val", "test"}) {
    if (has_folder_in(folder / name)) names.emplace_back(name);
  }
  return names.size() > 1 ? names : std::vector<std::string>{};
}

std::vector<LabelledFiles> scan_splits(const fs::path& folder,
                                       const std::vector<std::string>& names) {
  check(!names.empty() || !has_folder_in(folder / "train"), folder.string(),
        ": holds train but neither val nor test");
  if (names.empty()) return {scan_image_folder(folder)};
  std::vector<LabelledFiles> splits;
  for (const auto& name : names) {
    splits.push_back(scan_image_folder(folder / name));
    check(splits.back().class_names == splits.front().class_names, (folder / name).string(),
          ": must have the ", splits.front().class_names.size(), " classes of ",
          (folder / names.front()).string(), ", has ", splits.back().class_names.size(),
          " that are not all the same");
  }
  return splits;
}

}  // namespace

VerifyReport verify(const KnownDataset& dataset, const fs::path& data_folder,
                    const VerifyOptions& options) {
  const auto& layout = require_layout(dataset, data_folder);
  VerifyReport report{.name = dataset.name, .folder = data_folder / layout.folder};
  note_error(report, [&] {
    if (layout.format == StoredFormat::image_folder) {
      verify_stored_images(report, dataset, data_folder, options);
    } else {
      verify_files(report, dataset, layout, data_folder);
    }
  });
  return report;
}

VerifyReport verify_image_folder(const fs::path& folder, const VerifyOptions& options) {
  check(fs::is_directory(folder), folder.string(), ": no such folder");
  VerifyReport report{.name = "imagefolder:" + folder.string(), .folder = folder};
  note_error(report, [&] {
    const auto names = splits_in(folder);
    verify_images(report, names.empty() ? std::vector<std::string>{"all"} : names,
                  scan_splits(folder, names), options);
  });
  return report;
}

bool looks_like_image_folder(const fs::path& folder) { return !splits_in(folder).empty(); }

}  // namespace kelvin
