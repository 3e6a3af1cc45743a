#include "kelvin/data/fingerprint.h"

#include <torch/types.h>

#include <string_view>

#include "kelvin/sources/md5_sum.h"

namespace kelvin {
namespace {

std::string_view bytes_of(const torch::Tensor& tensor) {
  return {static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()};
}

}  // namespace

std::string fingerprint(const Images& images) {
  if (images.size() == 0) return md5_of("");
  const auto labels = images.labels.contiguous();
  // A sum of sums: the pixels need not be copied to stand behind the labels.
  auto sums = md5_of(bytes_of(labels));
  if (images.files) {
    for (const auto& file : images.files->files().paths) sums += file.filename().string() + "\n";
  } else {
    const auto pixels = images.pixels.contiguous();
    sums += md5_of(bytes_of(pixels));
  }
  return md5_of(sums);
}

}  // namespace kelvin
