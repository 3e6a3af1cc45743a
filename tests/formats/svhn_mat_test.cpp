#include "kelvin/formats/svhn_mat.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/mats.h"

namespace kelvin::svhn_mat_test {

const std::string kImages =
    "X=(np.arange(32 * 32 * 3 * 2) * 7 % 251).astype('u1').reshape(32, 32, 3, 2)";

// Element [row, column, channel, image] of kImages.
uint8_t pixel(size_t row, size_t column, size_t channel, size_t image) {
  return static_cast<uint8_t>((((row * 32 + column) * 3 + channel) * 2 + image) * 7 % 251);
}

// All pixels of kImages as [image, channel, row, column].
std::vector<uint8_t> planes() {
  std::vector<uint8_t> pixels;
  for (size_t plane = 0; plane < 6; ++plane) {
    for (size_t i = 0; i < 1024; ++i) {
      pixels.push_back(pixel(i / 32, i % 32, plane % 3, plane / 3));
    }
  }
  return pixels;
}

TEST(ParseSvhnMat, GivesPlanesInRowsWhateverTheContainer) {
  const std::string bytes = "dict(" + kImages + ", y=np.array([[10], [3]], 'u1'))";
  const std::string doubles = "dict(" + kImages + ", y=np.array([[10.], [3.]]))";
  const std::string packed = ", do_compression=True";
  for (const auto& file : scipy_mats({bytes, bytes + packed, doubles + packed})) {
    const auto images = parse_svhn_mat(file, "a");
    EXPECT_EQ(images.labels, (std::vector<int64_t>{0, 3}));
    EXPECT_EQ(images.channels, 3);
    EXPECT_EQ(images.height, 32);
    EXPECT_EQ(images.width, 32);
    EXPECT_EQ(images.pixels, planes());
  }
}

TEST(ParseSvhnMat, RejectsOtherArrays) {
  const auto files = scipy_mats({
      "dict(" + kImages + ")",
      "dict(y=np.array([[1]]))",
      "dict(" + kImages + ", y=np.array([[1]]))",
      "dict(" + kImages + ", y=np.array([[1], [11]]))",
      "dict(" + kImages + ", y=np.array([[0], [1]]))",
      "dict(" + kImages + ", y=np.array([[1.5], [1]]))",
      "dict(X=np.zeros((32, 31, 3, 2), 'u1'), y=np.array([[1], [2]]))",
      "dict(X=np.zeros((32, 32, 3, 2), 'i2'), y=np.array([[1], [2]]))",
      "dict(X=np.zeros((32, 32, 3), 'u1'), y=np.array([[1]]))",
      "dict(X=np.zeros((32, 32, 3, 0), 'u1'), y=np.zeros((0, 1)))",
  });
  const std::vector<std::string> messages = {
      "a: has no array y",
      "a: has no array X",
      "a: y must have as many labels as X has images, 2, has 1",
      "a: y: number 1: label must be 1 to 10, is 11",
      "a: y: number 0: label must be 1 to 10, is 0",
      "a: y: must be a whole number, is 1.5",
      "a: X: must be bytes of shape [32, 32, 3, n], is of type 2 and shape [32, 31, 3, 2]",
      "a: X: must be bytes of shape [32, 32, 3, n], is of type 3 and shape [32, 32, 3, 2]",
      "a: X: must be bytes of shape [32, 32, 3, n], is of type 2 and shape [32, 32, 3]",
      "a: X: must be bytes of shape [32, 32, 3, n], is of type 2 and shape [32, 32, 3, 0]",
  };
  for (size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(error_of([&] { parse_svhn_mat(files.at(i), "a"); }), messages.at(i));
  }
}

}  // namespace kelvin::svhn_mat_test
