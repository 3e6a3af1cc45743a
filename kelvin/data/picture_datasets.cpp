#include "kelvin/data/picture_datasets.h"

#include <torch/types.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/data/fit.h"
#include "kelvin/data/image_files.h"

// Collections of pictures that users have on disk.

namespace kelvin {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPictureSide = 224;

// Of ImageNet: what networks for photographs are usually given.
constexpr std::array<double, 3> kMean = {0.485, 0.456, 0.406};
constexpr std::array<double, 3> kStdDev = {0.229, 0.224, 0.225};

struct SplitFiles {
  LabelledFiles train = {};  // empty if there is no such split
  LabelledFiles test = {};
};

fs::path where(const DatasetRequest& request, const std::string& path) {
  if (fs::exists(path) || request.data_folder.empty()) return path;
  return request.data_folder / path;
}

struct SplitFolders {
  fs::path train = {};  // empty if the folder is not divided
  fs::path test = {};
};

// PATH/train and PATH/val or PATH/test; or class folders right below PATH, which then is a test
// split.
SplitFolders split_folders(const DatasetRequest& request) {
  check(!request.path.empty(), "imagefolder: needs a path, as in imagefolder:photos");
  const auto folder = where(request, request.path);
  check(fs::is_directory(folder), "imagefolder:", request.path, ": no such folder");
  if (!fs::is_directory(folder / "train")) return {.test = folder};
  for (const auto* split : {"val", "test"}) {
    if (fs::is_directory(folder / split))
      return {.train = folder / "train", .test = folder / split};
  }
  check(false, folder.string(), ": holds train but neither val nor test");
  return {};
}

SplitFiles folder_files(const DatasetRequest& request) {
  const auto folders = split_folders(request);
  SplitFiles files{.train = {}, .test = scan_image_folder(folders.test)};
  if (folders.train.empty()) return files;
  files.train = scan_image_folder(folders.train);
  check(files.test.class_names == files.train.class_names, folders.test.string(),
        ": must have the ", files.train.class_names.size(), " classes of ", folders.train.string(),
        ", has ", files.test.class_names.size(), " that are not all the same");
  return files;
}

// Folders of classes, counted without a look at the images: ImageNet has a million of them.
int64_t classes_in_folder(const DatasetRequest& request) {
  const auto folders = split_folders(request);
  int64_t classes = 0;
  for (const auto& entry :
       fs::directory_iterator(folders.train.empty() ? folders.test : folders.train)) {
    const bool is_hidden = entry.path().filename().string().starts_with('.');
    if (entry.is_directory() && !is_hidden) ++classes;
  }
  return classes;
}

// "imagelist:TEST.txt" or "imagelist:TRAIN.txt,TEST.txt".
SplitFiles list_files(const DatasetRequest& request) {
  const auto lists = split(request.path, ',');
  check(!request.path.empty() && lists.size() <= 2,
        "imagelist: needs one list, or one for training and one for testing, as in "
        "imagelist:train.txt,test.txt");
  const auto read = [&](const std::string& name) {
    const auto list = where(request, name);
    return read_image_list(list,
                           request.image_root.empty() ? list.parent_path() : request.image_root);
  };
  if (lists.size() == 1) return {.test = read(lists.front())};
  SplitFiles files{.train = read(lists.front()), .test = read(lists.back())};
  auto& names = files.train.class_names;
  if (files.test.class_names.size() > names.size()) names = files.test.class_names;
  return files;
}

template <class Files>
auto loader(const Files& find_files) {
  return [find_files](const DatasetRequest& request) {
    auto [train, test] = find_files(request);
    Dataset dataset;
    dataset.class_names = train.size() > 0 ? train.class_names : test.class_names;
    dataset.classes = static_cast<int64_t>(dataset.class_names.size());
    dataset.mean = kMean;
    dataset.std_dev = kStdDev;
    if (train.size() > 0) dataset.train = pictures(std::move(train), request, kPictureSide);
    dataset.test = pictures(std::move(test), request, kPictureSide);
    return dataset;
  };
}

int64_t classes_in_lists(const DatasetRequest& request) {
  const auto [train, test] = list_files(request);
  return static_cast<int64_t>((train.size() > 0 ? train : test).class_names.size());
}

template <class Count>
auto facts_of(const Count& count_classes) {
  return [count_classes](const DatasetRequest& request) {
    return DatasetFacts{.classes = count_classes(request),
                        .shape = {.channels = 3, .height = kPictureSide, .width = kPictureSide}};
  };
}

const bool registered_folder = datasets().add(
    "imagefolder", {.summary = "imagefolder:PATH, pictures in a folder per class, below train and "
                               "val if it has them",
                    .reference = "the layout of torchvision's ImageFolder",
                    .classes = 0,
                    .load = loader(folder_files),
                    .facts = facts_of(classes_in_folder)});
const bool registered_list = datasets().add(
    "imagelist", {.summary = "imagelist:TRAIN.txt,TEST.txt, lines of path and label; one list is a "
                             "test split",
                  .reference = "the image lists of OpenOOD",
                  .classes = 0,
                  .load = loader(list_files),
                  .facts = facts_of(classes_in_lists)});

}  // namespace

Images pictures(LabelledFiles files, const DatasetRequest& request, int64_t default_size) {
  Images images{.pixels = {}, .labels = torch::tensor(files.labels, torch::kInt64)};
  images.files = std::make_shared<ImageFiles>(
      std::move(files),
      ImageFileOptions{.size = request.image_size > 0 ? request.image_size : default_size,
                       .crop_share = request.crop_share});
  return request.cache_images ? decoded(images) : images;
}

}  // namespace kelvin
