#include "kelvin/data/fingerprint.h"

#include <gtest/gtest.h>
#include <torch/types.h>

namespace kelvin {
namespace {

Images images() {
  return {.pixels = torch::arange(24, torch::kUInt8).view({2, 3, 2, 2}),
          .labels = torch::tensor({int64_t{1}, int64_t{0}})};
}

TEST(Fingerprint, IsThatOfTheContentWhateverItsLayout) {
  auto other = images();
  other.pixels = other.pixels.contiguous(torch::MemoryFormat::ChannelsLast);
  EXPECT_EQ(fingerprint(other), fingerprint(images()));
  EXPECT_EQ(fingerprint(images()).size(), 32U);
}

TEST(Fingerprint, ChangesWithEveryPixelAndLabel) {
  auto pixel = images();
  pixel.pixels[1][2][1][1] = 7;
  EXPECT_NE(fingerprint(pixel), fingerprint(images()));
  auto label = images();
  label.labels[0] = 0;
  EXPECT_NE(fingerprint(label), fingerprint(images()));
}

TEST(Fingerprint, OfNoImagesIsThatOfNothing) {
  EXPECT_EQ(fingerprint({}), "d41d8cd98f00b204e9800998ecf8427e");
}

TEST(Fingerprint, OfPicturesOnDiskIsThatOfTheirNames) {
  const auto files = [](const std::string& name) {
    return Images{.pixels = {},
                  .labels = torch::zeros({1}, torch::kInt64),
                  .files = std::make_shared<ImageFiles>(
                      LabelledFiles{.paths = {"/a/" + name}, .labels = {0}}, ImageFileOptions{})};
  };
  EXPECT_EQ(fingerprint(files("x.png")), fingerprint(files("x.png")));
  EXPECT_NE(fingerprint(files("x.png")), fingerprint(files("y.png")));
}

}  // namespace
}  // namespace kelvin
