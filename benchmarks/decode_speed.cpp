// How many photographs per second become inputs of a network, on one thread: read, decoded, the
// short side brought to 256 pixels, the middle 224x224 cut out.  Run by decode_speed.py.
//
//   kelvin_decode_speed plain|scaled LIST ROUNDS [OUTPUT]
//
// LIST is a file with a path per line.  Prints images per second of
// processor time, a line per round; OUTPUT gets the
// pixels of all images, so that they can be compared.

#include <algorithm>
#include <ctime>
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

std::vector<std::string> read_list(const std::string& list) {
  std::vector<std::string> paths;
  std::ifstream lines(list);
  for (std::string path; std::getline(lines, path);) paths.push_back(path);
  check(!paths.empty(), list, ": must list images, has none");
  return paths;
}

void prepare(const std::string& path, bool is_scaled, std::span<uint8_t> rgb) {
  const auto file = read_file(path);
  const std::span bytes(reinterpret_cast<const uint8_t*>(file.data()), file.size());
  double largest_shrink = 1;
  if (is_scaled) {
    const auto size = picture_size(bytes, path);
    const auto side = static_cast<double>(std::min(size.width, size.height));
    largest_shrink = std::max(side / kShortSide, 1.0);
  }
  const auto picture = decode_picture(bytes, path, largest_shrink);
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
  const auto paths = read_list(words.at(1));
  constexpr size_t kBytes = kCrop * kCrop * 3;
  std::vector<uint8_t> rgb(kBytes * paths.size());
  for (int round = std::stoi(words.at(2)); round > 0; --round) {
    const auto start = std::clock();
    for (size_t i = 0; i < paths.size(); ++i) {
      prepare(paths[i], is_scaled, std::span(rgb).subspan(i * kBytes, kBytes));
    }
    const auto seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    std::cout << static_cast<double>(paths.size()) / seconds << std::endl;
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
