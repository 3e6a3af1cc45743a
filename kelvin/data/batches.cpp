#include "kelvin/data/batches.h"

#include <ATen/Parallel.h>
#include <torch/types.h>

#include <algorithm>
#include <numeric>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"

namespace kelvin {
namespace {

// A number below `bound` without the bias of a plain remainder (Lemire's multiplication).
uint64_t below(uint64_t bound, uint64_t bits) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * bound) >> 64);
}

std::vector<int64_t> permutation(uint64_t seed, int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  uint64_t state = seed;
  for (size_t i = order.size(); i > 1; --i) {
    state = scramble(state);
    std::swap(order[i - 1], order[below(i, state)]);
  }
  return order;
}

}  // namespace

std::vector<int64_t> epoch_order(uint64_t seed, int64_t epoch, int64_t samples) {
  return permutation(scramble(seed + static_cast<uint64_t>(epoch)), samples);
}

std::vector<int64_t> fixed_sample(uint64_t seed, int64_t count, int64_t samples) {
  auto order = permutation(seed, samples);
  order.resize(static_cast<size_t>(std::min(count, samples)));
  std::sort(order.begin(), order.end());
  return order;
}

BatchMaker::BatchMaker(const std::array<double, 3>& mean, const std::array<double, 3>& deviation) {
  for (size_t channel = 0; channel < 3; ++channel) {
    check(deviation.at(channel) > 0, "BatchMaker: deviation must be above 0, got ",
          deviation.at(channel));
    scale_.at(channel) = static_cast<float>(1 / (255 * deviation.at(channel)));
    shift_.at(channel) = static_cast<float>(-mean.at(channel) / deviation.at(channel));
  }
}

Batch BatchMaker::make(const Images& images, const std::vector<int64_t>& indices) const {
  const auto count = static_cast<int64_t>(indices.size());
  const auto channels = images.pixels.size(1);
  const auto area = images.pixels.size(2) * images.pixels.size(3);
  const auto [least, most] = std::minmax_element(indices.begin(), indices.end());
  check(!indices.empty() && *least >= 0 && *most < images.size(),
        "BatchMaker: indices must be in [0, ", images.size(), ") and at least one");
  check(channels <= 3, "BatchMaker: images must have at most 3 channels, got ", channels);
  auto batch = torch::empty(
      {count, channels, images.pixels.size(2), images.pixels.size(3)},
      torch::TensorOptions(torch::kFloat32).memory_format(torch::MemoryFormat::ChannelsLast));
  auto labels = torch::empty({count}, torch::kInt64);
  const auto* pixels = images.pixels.data_ptr<uint8_t>();
  const auto* all_labels = images.labels.data_ptr<int64_t>();
  auto* floats = batch.data_ptr<float>();
  auto* batch_labels = labels.data_ptr<int64_t>();

  // One pass: gather, convert, normalise and turn planes into channels-last.
  at::parallel_for(0, count, /*grain_size=*/16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto* image = pixels + indices[static_cast<size_t>(i)] * channels * area;
      auto* to = floats + i * channels * area;
      for (int64_t channel = 0; channel < channels; ++channel) {
        const float scale = scale_[static_cast<size_t>(channel)];
        const float shift = shift_[static_cast<size_t>(channel)];
        for (int64_t pixel = 0; pixel < area; ++pixel) {
          to[pixel * channels + channel] =
              static_cast<float>(image[channel * area + pixel]) * scale + shift;
        }
      }
      batch_labels[i] = all_labels[indices[static_cast<size_t>(i)]];
    }
  });
  return {.images = batch, .labels = labels};
}

}  // namespace kelvin
