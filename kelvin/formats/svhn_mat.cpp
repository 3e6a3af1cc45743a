#include "kelvin/formats/svhn_mat.h"

#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/formats/mat_file.h"

namespace kelvin {
namespace {

constexpr int64_t kSide = 32;
constexpr int64_t kSvhnChannels = 3;

// MATLAB keeps columns together, we keep rows: every plane is transposed.
std::vector<uint8_t> planes_of(const MatArray& array, const std::string& where) {
  const auto& shape = array.shape;
  const bool fits = array.type == MatType::uint8 && shape.size() == 4 && shape[0] == kSide &&
                    shape[1] == kSide && shape[2] == kSvhnChannels && shape[3] > 0;
  check(fits, where, ": must be bytes of shape [32, 32, 3, n], is of type ",
        static_cast<uint32_t>(array.type), " and shape ", shape_text(shape));
  constexpr size_t kPlane = kSide * kSide;
  std::vector<uint8_t> planes(array.bytes.size());
  for (size_t plane = 0; plane < planes.size(); plane += kPlane) {
    const char* columns = array.bytes.data() + plane;
    uint8_t* rows = planes.data() + plane;
    for (size_t x = 0; x < kSide; ++x) {
      for (size_t y = 0; y < kSide; ++y) {
        rows[y * kSide + x] = static_cast<uint8_t>(columns[x * kSide + y]);
      }
    }
  }
  return planes;
}

std::vector<int64_t> digits_of(const MatArray& array, const std::string& where) {
  auto digits = array.integers(where);
  for (size_t i = 0; i < digits.size(); ++i) {
    auto& digit = digits[i];
    check(digit >= 1 && digit <= 10, where, ": number ", i, ": label must be 1 to 10, is ", digit);
    digit %= 10;
  }
  return digits;
}

}  // namespace

RawImages parse_svhn_mat(std::string_view bytes, const std::string& where) {
  RawImages images{.channels = kSvhnChannels, .height = kSide, .width = kSide};
  visit_mat(bytes, where, [&](const MatArray& array) {
    if (array.name == "X") images.pixels = planes_of(array, where + ": X");
    if (array.name == "y") images.labels = digits_of(array, where + ": y");
  });
  check(!images.pixels.empty(), where, ": has no array X");
  check(!images.labels.empty(), where, ": has no array y");
  const auto count = static_cast<int64_t>(images.pixels.size()) / images.image_bytes();
  check(images.size() == count, where, ": y must have as many labels as X has images, ", count,
        ", has ", images.size());
  return images;
}

}  // namespace kelvin
