#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "kelvin/formats/images.h"
#include "tests/support/command.h"
#include "tests/support/python.h"

namespace kelvin {

inline std::vector<uint8_t> as_bytes(const std::string& text) { return {text.begin(), text.end()}; }

inline std::vector<uint8_t> front(const std::vector<uint8_t>& bytes, size_t length) {
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)};
}

// What comes before every script below: `folder`, and `picture` with colours, edges and texture.
inline const std::string kPicturesInPython = R"(
import io, os, struct, sys, zlib
import numpy as np
from PIL import Image
folder = sys.argv[1]
def picture(width, height, seed=0):
    random = np.random.RandomState(seed)
    y, x = np.mgrid[:height, :width]
    waves = [127 + 90 * np.sin(x / (3 + 4 * c) + y / (9 - 2 * c) + c) for c in range(3)]
    image = np.stack(waves, -1) + random.normal(0, 12, (height, width, 3))
    image[height // 3:height // 2, width // 4:width // 2] = random.randint(0, 256, 3)
    return Image.fromarray(np.clip(image, 0, 255).astype('uint8'))
def keep(name, data):
    with open(os.path.join(folder, name), 'wb') as file: file.write(data)
def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()
def keep_with_pixels(name, data, pixels_of=None):
    rgb = Image.open(io.BytesIO(pixels_of or data)).convert('RGB')
    keep(name, data)
    keep(name + '.rgb', rgb.tobytes())
    print(name, *rgb.size)
)";

// An image file of Pillow's making, and what Pillow reads in it.
struct PillowSample {
  std::vector<uint8_t> file = {};
  Picture decoded = {};
};

using PillowSamples = std::map<std::string, PillowSample>;

// All that `script` hands to keep_with_pixels, by name.
inline PillowSamples pillow_samples(const std::string& script) {
  const TemporaryFolder folder;
  std::istringstream lines(python_output(kPicturesInPython + script, {folder.path().string()}));
  PillowSamples samples;
  std::string name;
  int64_t width = 0;
  int64_t height = 0;
  while (lines >> name >> width >> height) {
    samples[name] = {.file = as_bytes(whole_file(folder / name)),
                     .decoded = {.width = width,
                                 .height = height,
                                 .rgb = as_bytes(whole_file(folder / (name + ".rgb")))}};
  }
  return samples;
}

inline void expect_same_picture(const Picture& actual, const Picture& expected,
                                const std::string& name) {
  EXPECT_EQ(actual.width, expected.width) << name;
  EXPECT_EQ(actual.height, expected.height) << name;
  ASSERT_EQ(actual.rgb.size(), expected.rgb.size()) << name;
  size_t different = 0;
  for (size_t i = 0; i < actual.rgb.size(); ++i) different += actual.rgb[i] != expected.rgb[i];
  EXPECT_EQ(different, 0U) << name << ": bytes that differ of " << actual.rgb.size();
}

}  // namespace kelvin
