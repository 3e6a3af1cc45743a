#include <torch/types.h>

#include <functional>
#include <span>

#include "kelvin/core/seeds.h"
#include "kelvin/data/dataset.h"
#include "kelvin/data/glyphs.h"
#include "kelvin/data/textures.h"
#include "kelvin/ops/parallel_for.h"

// Datasets drawn by code: no file, no download, the same bytes on every machine.

namespace kelvin {
namespace {

constexpr int64_t kSide = 32;
constexpr int64_t kImageBytes = 3 * kSide * kSide;
constexpr int64_t kDefaultTrain = 10'000;
constexpr int64_t kDefaultTest = 2'000;
constexpr uint64_t kSeed = 20260101;  // of the data itself: a run's seed does not change its data

using Draw = std::function<int64_t(uint64_t seed, uint64_t index, std::span<uint8_t> pixels)>;

Images draw_split(const Draw& draw, const char* stream, int64_t samples) {
  Images images{.pixels = torch::empty({samples, 3, kSide, kSide}, torch::kUInt8),
                .labels = torch::empty({samples}, torch::kInt64)};
  auto* pixels = images.pixels.data_ptr<uint8_t>();
  auto* labels = images.labels.data_ptr<int64_t>();
  const uint64_t seed = derive_seed(kSeed, stream);
  parallel_for(0, samples, /*grain_size=*/64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      labels[i] = draw(seed, static_cast<uint64_t>(i),
                       {pixels + i * kImageBytes, static_cast<size_t>(kImageBytes)});
    }
  });
  return images;
}

auto facts_of(int64_t classes) {
  return [classes](const DatasetRequest&) {
    return DatasetFacts{.classes = classes, .shape = {}, .train_samples = kDefaultTrain};
  };
}

auto loader(const Draw& draw) {
  return [draw](const DatasetRequest& request) {
    Dataset dataset;
    dataset.train = draw_split(draw, "train",
                               request.train_samples > 0 ? request.train_samples : kDefaultTrain);
    dataset.test =
        draw_split(draw, "test", request.test_samples > 0 ? request.test_samples : kDefaultTest);
    const auto floats = dataset.train.pixels.to(torch::kFloat64).div_(255);
    for (int64_t channel = 0; channel < 3; ++channel) {
      const auto values = floats.select(1, channel);
      dataset.mean.at(static_cast<size_t>(channel)) = values.mean().item<double>();
      dataset.std_dev.at(static_cast<size_t>(channel)) = values.std().item<double>();
    }
    return dataset;
  };
}

Draw glyphs(int64_t classes) {
  return [classes](uint64_t seed, uint64_t index, std::span<uint8_t> pixels) {
    return draw_glyph({.classes = classes}, seed, index, pixels);
  };
}

constexpr auto kReference = "drawn by kelvin, docs/data.md";

const bool registered_100 =
    datasets().add("glyphs100", {.summary = "embedded: 100 classes of drawn glyphs in clutter",
                                 .reference = kReference,
                                 .classes = 100,
                                 .load = loader(glyphs(100)),
                                 .facts = facts_of(100)});
const bool registered_10 =
    datasets().add("glyphs10", {.summary = "embedded: 10 classes of drawn glyphs in clutter",
                                .reference = kReference,
                                .classes = 10,
                                .load = loader(glyphs(10)),
                                .facts = facts_of(10)});
const bool registered_textures = datasets().add(
    "textures10", {.summary = "embedded: 10 classes of drawn textures, OOD to the glyphs",
                   .reference = kReference,
                   .classes = 10,
                   .load = loader([](uint64_t seed, uint64_t index, std::span<uint8_t> pixels) {
                     return draw_texture(seed, index, pixels);
                   }),
                   .facts = facts_of(10)});

}  // namespace
}  // namespace kelvin
