#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/formats/picture.h"
#include "tests/support/command.h"
#include "tests/support/python.h"

namespace kelvin {

inline std::vector<uint8_t> as_bytes(const std::string& text) { return {text.begin(), text.end()}; }

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
def keep_with_pixels(name, data):
    rgb = Image.open(io.BytesIO(data)).convert('RGB')
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

// More of them can be asked for by KELVIN_FUZZ_ROUNDS, a factor.
inline int fuzz_rounds(int rounds) {
  const char* factor = std::getenv("KELVIN_FUZZ_ROUNDS");
  return rounds * (factor == nullptr ? 1 : std::max(std::atoi(factor), 1));
}

// Decodes damaged copies of `file`: each must give a picture or an Error of one line.
template <class Decode>
void expect_survival(const std::vector<uint8_t>& file, int rounds, unsigned seed,
                     const Decode& decode) {
  std::mt19937 random(seed);
  for (int round = 0; round < fuzz_rounds(rounds); ++round) {
    auto damaged = file;
    const auto changes = 1 + random() % 4;
    for (unsigned change = 0; change < changes && !damaged.empty(); ++change) {
      const auto at = random() % damaged.size();
      const auto length = std::min<size_t>(1 + random() % 40, damaged.size() - at);
      const auto begin = damaged.begin() + static_cast<std::ptrdiff_t>(at);
      switch (random() % 5) {
        case 0:
          *begin = static_cast<uint8_t>(random());
          break;
        case 1:
          *begin = static_cast<uint8_t>(*begin ^ (1U << random() % 8));
          break;
        case 2:
          damaged.erase(begin, begin + static_cast<std::ptrdiff_t>(length));
          break;
        case 3: {
          const std::vector<uint8_t> copy(begin, begin + static_cast<std::ptrdiff_t>(length));
          damaged.insert(begin, copy.begin(), copy.end());
          break;
        }
        default:
          *begin = random() % 2 == 0 ? 0xff : 0x00;
      }
    }
    try {
      const Picture picture = decode(damaged);
      EXPECT_EQ(picture.rgb.size(), static_cast<size_t>(picture.width * picture.height * 3));
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

}  // namespace kelvin
