#include "kelvin/formats/svhn_mat.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/mats.h"

namespace kelvin {
namespace {

const std::string kImages =
    "X=(np.arange(32 * 32 * 3 * 2) * 7 % 251).astype('u1').reshape(32, 32, 3, 2)";

// Element [row, column, channel, image] of kImages.
uint8_t pixel(size_t row, size_t column, size_t channel, size_t image) {
  return static_cast<uint8_t>((((row * 32 + column) * 3 + channel) * 2 + image) * 7 % 251);
}

TEST(ParseSvhnMat, GivesPlanesInRowsWhateverTheContainer) {
  const std::string labels = ", y=np.array([[10], [3]], 'u1')";
  const std::string doubles = ", y=np.array([[10.], [3.]])";
  for (const auto& bytes : scipy_mats({"dict(" + kImages + labels + ")",
                                       "dict(" + kImages + labels + "), do_compression=True",
                                       "dict(" + kImages + doubles + "), do_compression=True"})) {
    const auto images = parse_svhn_mat(bytes, "a");
    EXPECT_EQ(images.labels, (std::vector<int64_t>{0, 3}));
    EXPECT_EQ(images.channels, 3);
    EXPECT_EQ(images.height, 32);
    EXPECT_EQ(images.width, 32);
    ASSERT_EQ(images.pixels.size(), 6144U);
    size_t at = 0;
    for (size_t image = 0; image < 2; ++image) {
      for (size_t channel = 0; channel < 3; ++channel) {
        for (size_t row = 0; row < 32; ++row) {
          for (size_t column = 0; column < 32; ++column) {
            ASSERT_EQ(images.pixels.at(at++), pixel(row, column, channel, image));
          }
        }
      }
    }
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
      "a: y 1: label must be 1 to 10, is 11",
      "a: y 0: label must be 1 to 10, is 0",
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

}  // namespace
}  // namespace kelvin
