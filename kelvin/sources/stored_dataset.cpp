#include "kelvin/sources/stored_dataset.h"

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/text.h"
#include "kelvin/formats/cifar.h"
#include "kelvin/formats/gzip.h"
#include "kelvin/formats/idx_file.h"
#include "kelvin/formats/svhn_mat.h"

namespace kelvin {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kMostFileBytes = int64_t{1} << 30;  // of files with no published size

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// What to do if it is not there.
std::string remedy_for(const KnownDataset& dataset) {
  return dataset.routes.empty() ? dataset.how_to_get
                                : "'kelvin data fetch " + dataset.name + "' gets it";
}

// The files of one split of a dataset, as they lie below a folder.
class SplitReader {
 public:
  SplitReader(const KnownDataset& dataset, const fs::path& data_folder, StoredSplit split)
      : dataset_(dataset),
        layout_(require_layout(dataset, data_folder)),
        data_folder_(data_folder),
        is_train_(split == StoredSplit::train) {
    check(layout_.format != StoredFormat::image_folder, dataset_.name, ": lies in ",
          (data_folder_ / layout_.folder).string(), " as files of images, must be read one by one");
  }

  RawImages read() const {
    auto images = layout_.format == StoredFormat::idx ? read_idx() : read_all_files();
    check(images.channels == dataset_.channels && images.height == dataset_.height &&
              images.width == dataset_.width,
          (data_folder_ / files().front().path).string(), ": images must be ", dataset_.channels,
          " x ", dataset_.height, " x ", dataset_.width, ", are ", images.channels, " x ",
          images.height, " x ", images.width);
    check_count(images);
    return images;
  }

 private:
  const std::vector<KnownFile>& files() const {
    return is_train_ ? layout_.train_files : layout_.test_files;
  }

  bool has_known_size(const KnownFile& file) const {
    return file.bytes > 0 && !layout_.md5_may_differ;
  }

  void check_size(const KnownFile& file, const fs::path& path, uint64_t size) const {
    check(!has_known_size(file) || size == static_cast<uint64_t>(file.bytes), path.string(),
          ": must have ", file.bytes, " bytes, has ", size);
  }

  // Looks at the size before it reads, so that a wrong file costs nothing.
  std::string content_of(const KnownFile& file) const {
    const auto path = data_folder_ / file.path;
    check(is_there(path), path.string(), ": is missing; ", remedy_for(dataset_));
    check_is_file(path);
    check_size(file, path, fs::file_size(path));
    return read_stored_file(path, kMostFileBytes);
  }

  RawImages parse(const KnownFile& file) const {
    const auto bytes = content_of(file);
    const auto where = (data_folder_ / file.path).string();
    switch (layout_.format) {
      case StoredFormat::cifar_binary:
        return parse_cifar_binary(bytes, where,
                                  {.label_bytes = layout_.label_bytes,
                                   .label_index = layout_.label_index,
                                   .classes = dataset_.classes()});
      case StoredFormat::cifar_pickle:
        return parse_cifar_pickle(bytes, where, layout_.label_key, dataset_.classes());
      case StoredFormat::svhn_mat:
        return parse_svhn_mat(bytes, where);
      case StoredFormat::idx:
      case StoredFormat::image_folder:
        break;
    }
    check(false, where, ": must hold images and labels in one file");
    return {};
  }

  // Files that hold images and labels, one after the other.
  RawImages read_all_files() const {
    RawImages all;
    for (const auto& file : files()) {
      auto part = parse(file);
      if (all.labels.empty()) {
        all = std::move(part);
        all.pixels.reserve(all.pixels.size() * files().size());
      } else {
        all.pixels.insert(all.pixels.end(), part.pixels.begin(), part.pixels.end());
        all.labels.insert(all.labels.end(), part.labels.begin(), part.labels.end());
      }
    }
    return all;
  }

  fs::path idx_path(const KnownFile& file) const {
    const auto plain = data_folder_ / file.path;
    auto packed = plain;
    packed += ".gz";
    return !is_there(plain) && is_there(packed) ? packed : plain;
  }

  std::string idx_content(const KnownFile& file) const {
    const auto path = idx_path(file);
    check(is_there(path), path.string(), ": is missing; ", remedy_for(dataset_));
    auto bytes = read_file_or_gzip(path, has_known_size(file) ? file.bytes : kMostFileBytes);
    check_size(file, path, bytes.size());
    return bytes;
  }

  RawImages read_idx() const {
    const auto& image_file = files().at(0);
    const auto& label_file = files().at(1);
    auto images = parse_idx_images(idx_content(image_file), idx_path(image_file).string());
    const auto count = static_cast<int64_t>(images.pixels.size()) / images.image_bytes();
    const auto label_path = idx_path(label_file).string();
    images.labels = parse_idx_labels(idx_content(label_file), label_path, dataset_.classes());
    check(images.size() == count, label_path, ": must have as many labels as there are images, ",
          count, ", has ", images.size());
    return images;
  }

  // Where sizes are published they say the same.
  void check_count(const RawImages& images) const {
    const auto& counts = is_train_ ? dataset_.train_counts : dataset_.test_counts;
    if (counts.empty() || has_known_size(files().front())) return;
    const auto published = std::accumulate(counts.begin(), counts.end(), int64_t{0});
    check(images.size() == published, (data_folder_ / layout_.folder).string(), ": the ",
          is_train_ ? "train" : "test", " split must have ", published, " images, has ",
          images.size());
  }

  const KnownDataset& dataset_;
  const Layout& layout_;
  const fs::path& data_folder_;
  bool is_train_;
};

}  // namespace

const Layout* find_layout(const KnownDataset& dataset, const fs::path& data_folder) {
  for (const auto& layout : dataset.layouts) {
    if (is_folder(data_folder / layout.folder)) return &layout;
  }
  return nullptr;
}

const Layout& require_layout(const KnownDataset& dataset, const fs::path& data_folder) {
  const auto* layout = find_layout(dataset, data_folder);
  if (layout == nullptr) {
    std::vector<std::string> folders;
    for (const auto& candidate : dataset.layouts) folders.push_back(candidate.folder);
    check(false, dataset.name, ": not found in ", data_folder.string(), " (looked for ",
          join(folders, ", "), "); ", remedy_for(dataset));
  }
  return *layout;
}

RawImages read_stored(const KnownDataset& dataset, const fs::path& data_folder, StoredSplit split) {
  return SplitReader(dataset, data_folder, split).read();
}

LabelledFiles list_stored(const KnownDataset& dataset, const fs::path& data_folder,
                          StoredSplit split) {
  const auto& layout = require_layout(dataset, data_folder);
  const auto folder = data_folder / layout.folder;
  check(layout.format == StoredFormat::image_folder, dataset.name, ": lies in ", folder.string(),
        " as whole splits, has no files of images");
  if (split == StoredSplit::train) return scan_image_folder(folder / "train", dataset.class_names);
  const auto* name = is_folder(folder / "val") || !is_folder(folder / "test") ? "val" : "test";
  return scan_image_folder(folder / name, dataset.class_names);
}

}  // namespace kelvin
