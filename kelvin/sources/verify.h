#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "kelvin/formats/images.h"
#include "kelvin/sources/known_dataset.h"

namespace kelvin {

enum class FileState {
  official,     // size and md5 are the published ones
  unpublished,  // there, and nothing is published about it that could differ
  differs,      // another size or md5 than published, or it cannot be read
  missing,
};

// One file of a layout, as it lies on disk.  Of an idx file that lies there as .gz, size and md5
// are those of what it holds.
struct FileReport {
  std::filesystem::path path;
  int64_t bytes = 0;
  std::string md5 = {};
  FileState state = FileState::missing;
  std::string problem = {};  // what differs, in one line that begins with the path
};

FileReport report_file(const KnownFile& file, StoredFormat format,
                       const std::filesystem::path& data_folder);

// Images and labels first, then the others.
std::vector<KnownFile> all_files(const Layout& layout);

// Of all pixels of a channel, in [0, 1].  Summed in whole numbers, hence exact up to the last
// division and square root.
struct PixelStatistics {
  std::vector<double> mean = {};     // [channels]
  std::vector<double> std_dev = {};  // of the population: divided by the number of pixels
};

// No image, or pixels that do not fit the shape, is an Error.
PixelStatistics pixel_statistics(const RawImages& images);

enum class DataVerdict {
  official,       // every file of images and labels is the published one, byte for byte
  equal_content,  // another container, or none is published, with the published counts and pixels
  readable,       // nothing is published to compare with, but all of it can be read
  wrong,
};

struct SplitReport {
  std::string name;  // "train", "test", "val", or "all" of a folder that has no splits
  int64_t samples = 0;
  std::vector<int64_t> counts = {};  // of each class
  PixelStatistics statistics = {};   // of the training split; empty for image folders
};

struct VerifyReport {
  std::string name;
  std::filesystem::path folder = {};
  std::vector<FileReport> files = {};  // none for image folders
  std::vector<SplitReport> splits = {};
  DataVerdict verdict = DataVerdict::wrong;
  std::string reason = {};  // why it is wrong: file, what is required, what was found
};

struct VerifyOptions {
  bool thorough = false;  // image folders: decode every image instead of reading its header
  std::function<void(int64_t done, int64_t total)> progress = {};  // images of image folders
};

// Compares the dataset with what is published: size and md5 of each file, the number of images of
// each class, and mean and standard deviation of the training pixels, to 5e-5.  Files that are not
// needed to read it (names of classes) may be missing.  An Error only if the dataset is not there.
VerifyReport verify(const KnownDataset& dataset, const std::filesystem::path& data_folder,
                    const VerifyOptions& options = {});

// Any folder of class folders, or one with `train` and with `val` or `test`, which must have the
// same classes.  Each image must have a readable header.  An Error only if it is no folder.
VerifyReport verify_image_folder(const std::filesystem::path& folder,
                                 const VerifyOptions& options = {});

// Whether it has `train` and `val` or `test`, each with a folder in it.
bool looks_like_image_folder(const std::filesystem::path& folder);

}  // namespace kelvin
