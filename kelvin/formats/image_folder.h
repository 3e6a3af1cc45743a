#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kelvin {

// Image files with their labels, in a fixed order.
struct LabelledFiles {
  std::vector<std::filesystem::path> paths = {};
  std::vector<int64_t> labels = {};
  std::vector<std::string> class_names = {};

  int64_t size() const { return static_cast<int64_t>(paths.size()); }
};

// A folder per class with .jpg, .jpeg, .png files in any case of letters, at any depth below it;
// classes and files sorted by name, as torchvision's ImageFolder does.  Names that begin with a dot
// are left out.  No class, one without an image, or pictures of other kinds (GIF) are an Error.
LabelledFiles scan_image_folder(const std::filesystem::path& folder);

// The same, but only these class folders, labelled in this order; a missing one is an Error.
LabelledFiles scan_image_folder(const std::filesystem::path& folder,
                                const std::vector<std::string>& class_names);

// An OpenOOD image list: lines of `path label`, paths relative to `root`.  A label of -1, which
// lists of OOD images have throughout, means unlabelled and becomes the one class "unlabelled".
LabelledFiles read_image_list(const std::filesystem::path& list, const std::filesystem::path& root);

}  // namespace kelvin
