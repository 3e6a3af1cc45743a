#include "kelvin/sources/verify.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "kelvin/core/check.h"
#include "kelvin/formats/image_file.h"
#include "kelvin/formats/image_folder.h"
#include "kelvin/formats/stored_file.h"
#include "kelvin/sources/stored_dataset.h"

namespace kelvin {
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
    compare("deviation", i, dataset.deviation.at(i), split.statistics.deviation.at(i));
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
