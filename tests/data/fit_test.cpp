#include "kelvin/data/fit.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "kelvin/formats/png_file.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::fit_test {

Images random_images(int64_t channels, int64_t height, int64_t width) {
  torch::manual_seed(3);
  return {.pixels = torch::randint(256, {5, channels, height, width}, torch::kUInt8),
          .labels = labels_of({0, 1, 2, 3, 4})};
}

TEST(FitTo, LeavesImagesThatFitAlone) {
  const auto images = random_images(3, 8, 8);
  const auto fitted = fit_to(images, {.channels = 3, .height = 8, .width = 8});
  EXPECT_EQ(fitted.pixels.data_ptr(), images.pixels.data_ptr());
  EXPECT_EQ(fit_to({}, {}).size(), 0) << "nothing stays nothing";
}

TEST(FitTo, ShowsDigitsToANetworkForColouredImagesAsPillowWould) {
  const auto images = random_images(1, 28, 28);
  const auto fitted = fit_to(images, {.channels = 3, .height = 32, .width = 32});
  EXPECT_TRUE(fitted.labels.equal(images.labels));
  const auto expected = oracle(
      "from PIL import Image\n"
      "out['y'] = np.stack([np.asarray(Image.fromarray(i[0]).convert('RGB').resize((32, 32), "
      "Image.BILINEAR)).transpose(2, 0, 1) for i in x['x']])",
      {{"x", images.pixels}});
  EXPECT_TRUE(fitted.pixels.equal(expected.at("y")));
}

TEST(FitTo, TurnsColoursIntoPillowsLuma) {
  const auto images = random_images(3, 6, 5);
  const auto fitted = fit_to(images, {.channels = 1, .height = 6, .width = 5});
  const auto expected = oracle(
      "from PIL import Image\n"
      "out['y'] = np.stack([np.asarray(Image.fromarray(np.ascontiguousarray(i.transpose(1, 2, 0)))"
      ".convert('L'))[None] for i in x['x']])",
      {{"x", images.pixels}});
  EXPECT_TRUE(fitted.pixels.equal(expected.at("y")));
}

TEST(FitTo, RejectsTwoChannels) {
  EXPECT_EQ(error_of([] { fit_to(random_images(2, 4, 4), {}); }),
            "fit_to: images must have 1 or 3 channels, got 2");
}

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

}  // namespace kelvin::fit_test
