#pragma once

#include <vector>

#include "kelvin/sources/known_dataset.h"

namespace kelvin {

// Where the files of a dataset are, on disk and in the net.
struct KnownFiles {
  std::vector<Layout> layouts = {};
  std::vector<Route> routes = {};
};

KnownFiles cifar10_files();
KnownFiles cifar100_files();
KnownFiles cifar100_coarse_files();
KnownFiles svhn_files();
KnownFiles mnist_files();
KnownFiles fashion_mnist_files();
KnownFiles kmnist_files();
KnownFiles imagenet100_files();
KnownFiles imagenet1k_files();

}  // namespace kelvin
