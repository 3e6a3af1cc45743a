// How many photographs per second become inputs of a network, on one thread: decoded, the short
// side brought to 256 pixels, the middle 224x224 cut out.  Run by decode_speed.py.
//
//   kelvin_decode_speed plain|scaled LIST ROUNDS [OUTPUT]
//
// LIST is a file with a path per line.  Prints images per second, a line per round; OUTPUT gets the
// pixels of all images, so that they can be compared.

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/formats/image_file.h"
#include "kelvin/formats/resize.h"

namespace kelvin {
namespace {

constexpr int64_t kShortSide = 256;
constexpr int64_t kCrop = 224;

struct EncodedImage {
  std::string path;
  std::string bytes;

  std::span<const uint8_t> data() const {
    return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
  }
};

std::vector<EncodedImage> read_images(const std::string& list) {
  std::vector<EncodedImage> images;
  std::ifstream lines(list);
  for (std::string path; std::getline(lines, path);) {
    images.push_back({.path = path, .bytes = read_file(path)});
  }
  check(!images.empty(), list, ": must list images, has none");
  return images;
}

void prepare(const EncodedImage& image, bool is_scaled, std::span<uint8_t> rgb) {
  double largest_shrink = 1;
  if (is_scaled) {
    const auto size = picture_size(image.data(), image.path);
    const auto side = static_cast<double>(std::min(size.width, size.height));
    largest_shrink = std::max(side / kShortSide, 1.0);
  }
  const auto picture = decode_picture(image.data(), image.path, largest_shrink);
  const auto side = static_cast<double>(std::min(picture.width, picture.height));
  const double crop = side * kCrop / kShortSide;
  const Box box{.left = (static_cast<double>(picture.width) - crop) / 2,
                .top = (static_cast<double>(picture.height) - crop) / 2,
                .width = crop,
                .height = crop};
  resize(picture, box, kCrop, kCrop, rgb);
}

int run(const std::vector<std::string>& words) {
  check(words.size() == 3 || words.size() == 4,
        "must be called as: kelvin_decode_speed plain|scaled LIST ROUNDS [OUTPUT]");
  const bool is_scaled = words.at(0) == "scaled";
  const auto images = read_images(words.at(1));
  constexpr size_t kBytes = kCrop * kCrop * 3;
  std::vector<uint8_t> rgb(kBytes * images.size());
  for (int round = std::stoi(words.at(2)); round > 0; --round) {
    const auto start = std::chrono::steady_clock::now();
    for (size_t i = 0; i < images.size(); ++i) {
      prepare(images[i], is_scaled, std::span(rgb).subspan(i * kBytes, kBytes));
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::cout << static_cast<double>(images.size()) / seconds.count() << std::endl;
  }
  if (words.size() == 4) {
    write_file_atomically(words.at(3), {reinterpret_cast<const char*>(rgb.data()), rgb.size()});
  }
  return 0;
}

}  // namespace
}  // namespace kelvin

int main(int count, char** words) {
  try {
    return kelvin::run({words + 1, words + count});
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
