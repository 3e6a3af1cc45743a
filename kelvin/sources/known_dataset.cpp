#include "kelvin/sources/known_dataset.h"

#include <algorithm>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/sources/known_files.h"

namespace kelvin {

std::vector<std::string> class_names(const std::string& list) {
  const auto found = class_lists().find(list);
  check(found != class_lists().end(), "no list of classes named '", list, "'");
  auto names = split(found->second, '\n');
  if (names.back().empty()) names.pop_back();  // the last line ends as the others do
  return names;
}

namespace {

std::vector<int64_t> each(size_t classes, int64_t images) {
  return std::vector<int64_t>(classes, images);
}

KnownDataset with_files(KnownDataset dataset, KnownFiles files) {
  dataset.layouts = std::move(files.layouts);
  dataset.routes = std::move(files.routes);
  return dataset;
}

KnownDataset cifar10() {
  return {.name = "cifar10",
          .summary = "60000 colour photographs of 32 x 32 pixels in 10 classes of objects",
          .citation = "Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
          .licence = "no licence stated; research use, cite the report",
          .class_names = class_names("cifar10"),
          .mean = {0.4914, 0.4822, 0.4465},
          .std_dev = {0.2470, 0.2435, 0.2616},
          .train_counts = each(10, 5000),
          .test_counts = each(10, 1000)};
}

KnownDataset cifar100() {
  return {.name = "cifar100",
          .summary = "60000 colour photographs of 32 x 32 pixels in 100 classes of objects",
          .citation = "Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
          .licence = "no licence stated; research use, cite the report",
          .class_names = class_names("cifar100"),
          .mean = {0.5071, 0.4865, 0.4409},
          .std_dev = {0.2673, 0.2564, 0.2762},
          .train_counts = each(100, 500),
          .test_counts = each(100, 100)};
}

KnownDataset cifar100_coarse() {
  auto dataset = cifar100();
  dataset.name = "cifar100-coarse";
  dataset.summary = "the images of cifar100, labelled with 20 groups of its classes";
  dataset.class_names = class_names("cifar100-coarse");
  dataset.train_counts = each(20, 2500);
  dataset.test_counts = each(20, 500);
  return dataset;
}

KnownDataset svhn() {
  return {.name = "svhn",
          .summary = "99289 colour photographs of 32 x 32 pixels of digits of house numbers",
          .citation =
              "Netzer et al., Reading Digits in Natural Images with Unsupervised Feature "
              "Learning, 2011",
          .licence = "non-commercial use only",
          .class_names = class_names("digits"),
          .mean = {0.4377, 0.4438, 0.4728},
          .std_dev = {0.1980, 0.2010, 0.1970},
          .train_counts = {4948, 13861, 10585, 8497, 7458, 6882, 5727, 5595, 5045, 4659},
          .test_counts = {1744, 5099, 4149, 2882, 2523, 2384, 1977, 2019, 1660, 1595}};
}

// What MNIST and those made after it have in common.
KnownDataset grey_dataset(double mean, double std_dev) {
  return {.channels = 1,
          .height = 28,
          .width = 28,
          .mean = {mean, mean, mean},
          .std_dev = {std_dev, std_dev, std_dev}};
}

KnownDataset mnist() {
  auto dataset = grey_dataset(0.1307, 0.3081);
  dataset.name = "mnist";
  dataset.summary = "70000 grey images of 28 x 28 pixels of handwritten digits";
  dataset.citation = "LeCun et al., Gradient-Based Learning Applied to Document Recognition, 1998";
  dataset.licence = "CC BY-SA 3.0";
  dataset.class_names = class_names("digits");
  dataset.train_counts = {5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949};
  dataset.test_counts = {980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009};
  return dataset;
}

KnownDataset fashion_mnist() {
  auto dataset = grey_dataset(0.2860, 0.3530);
  dataset.name = "fashion-mnist";
  dataset.summary = "70000 grey images of 28 x 28 pixels of clothes in 10 classes";
  dataset.citation =
      "Xiao et al., Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning "
      "Algorithms, 2017";
  dataset.licence = "MIT";
  dataset.class_names = class_names("fashion-mnist");
  dataset.train_counts = each(10, 6000);
  dataset.test_counts = each(10, 1000);
  return dataset;
}

KnownDataset kmnist() {
  auto dataset = grey_dataset(0.1918, 0.3483);
  dataset.name = "kmnist";
  dataset.summary = "70000 grey images of 28 x 28 pixels of 10 cursive Japanese letters";
  dataset.citation = "Clanuwat et al., Deep Learning for Classical Japanese Literature, 2018";
  dataset.licence = "CC BY-SA 4.0";
  dataset.class_names = class_names("kmnist");
  dataset.train_counts = each(10, 6000);
  dataset.test_counts = each(10, 1000);
  return dataset;
}

// Counts stay empty: people keep parts of it, and nothing published is checked against.
KnownDataset imagenet(const std::string& name) {
  return {.name = name,
          .licence = "image-net.org terms: non-commercial research",
          .height = 224,
          .width = 224,
          .class_names = class_names(name),
          .mean = {0.485, 0.456, 0.406},
          .std_dev = {0.229, 0.224, 0.225}};
}

KnownDataset imagenet100() {
  auto dataset = imagenet("imagenet100");
  dataset.summary = "a hundred classes of ImageNet, photographs of any size";
  dataset.citation = "Tian et al., Contrastive Multiview Coding, 2020";
  dataset.how_to_get =
      "image-net.org gives ImageNet to those who accept its terms; put its train and val folders, "
      "one folder per class, below imagenet1k, or the hundred classes alone below imagenet100";
  return dataset;
}

KnownDataset imagenet1k() {
  auto dataset = imagenet("imagenet1k");
  dataset.summary = "the thousand classes of ILSVRC 2012, photographs of any size";
  dataset.citation = "Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, 2015";
  dataset.how_to_get =
      "image-net.org gives it to those who accept its terms; put its train and val folders, one "
      "folder per class, below imagenet1k";
  return dataset;
}

std::vector<std::string> names() {
  std::vector<std::string> list;
  for (const auto& dataset : known_datasets()) list.push_back(dataset.name);
  return list;
}

}  // namespace

const std::vector<KnownDataset>& known_datasets() {
  static const std::vector<KnownDataset> datasets = {
      with_files(cifar10(), cifar10_files()),
      with_files(cifar100(), cifar100_files()),
      with_files(cifar100_coarse(), cifar100_coarse_files()),
      with_files(svhn(), svhn_files()),
      with_files(mnist(), mnist_files()),
      with_files(fashion_mnist(), fashion_mnist_files()),
      with_files(kmnist(), kmnist_files()),
      with_files(imagenet100(), imagenet100_files()),
      with_files(imagenet1k(), imagenet1k_files()),
  };
  return datasets;
}

const KnownDataset& known_dataset(const std::string& name) {
  const auto& all = known_datasets();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const auto& dataset) { return dataset.name == name; });
  if (found == all.end()) {
    const auto guess = nearest_name(name, names());
    check(false, "no known dataset named '", name, "'",
          guess.empty() ? "." : "; did you mean '" + guess + "'?",
          " There are: ", join(names(), ", "));
  }
  return *found;
}

}  // namespace kelvin
