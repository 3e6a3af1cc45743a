#include "kelvin/data/decoded.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "kelvin/formats/png_file.h"
#include "tests/support/command.h"
#include "tests/support/tensors.h"

namespace kelvin {
namespace {

TEST(Decoded, LeavesImagesInMemoryAlone) {
  const Images images{.pixels = torch::zeros({2, 3, 4, 4}, torch::kUInt8),
                      .labels = labels_of({0, 1})};
  EXPECT_EQ(decoded(images).pixels.data_ptr(), images.pixels.data_ptr());
}

TEST(Decoded, TurnsFilesIntoPlanes) {
  const TemporaryFolder folder;
  LabelledFiles files{.paths = {}, .labels = {1, 0}, .class_names = {"a", "b"}};
  for (const uint8_t colour : {10, 200}) {
    const auto path = folder / (std::to_string(colour) + ".png");
    Picture picture{.width = 8, .height = 8};
    for (int i = 0; i < 64; ++i) {
      picture.rgb.insert(picture.rgb.end(), {colour, uint8_t(colour + 1), uint8_t(colour + 2)});
    }
    write_png(path, picture);
    files.paths.emplace_back(path);
  }
  Images images{.pixels = {}, .labels = labels_of({1, 0})};
  images.files = std::make_shared<ImageFiles>(files, ImageFileOptions{.size = 4, .crop_share = 1});
  const auto bytes = decoded(images);
  EXPECT_FALSE(bytes.files);
  EXPECT_EQ(bytes.shape(), (ImageShape{.channels = 3, .height = 4, .width = 4}));
  EXPECT_TRUE(bytes.labels.equal(images.labels));
  for (int64_t c = 0; c < 3; ++c) {
    EXPECT_TRUE((bytes.pixels[0][c] == 10 + c).all().item<bool>());
    EXPECT_TRUE((bytes.pixels[1][c] == 200 + c).all().item<bool>());
  }
}

}  // namespace
}  // namespace kelvin
