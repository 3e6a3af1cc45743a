#include "kelvin/data/batches.h"

#include <torch/types.h>

#include <algorithm>
#include <numeric>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/ops/parallel_for.h"

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

// The bytes of one image, wherever its channels lie.
struct ByteImage {
  const uint8_t* bytes = nullptr;
  int64_t channel_stride = 0;
  int64_t row_stride = 0;
  int64_t pixel_stride = 0;
};

// One image: window, mirror, convert, normalise and turn planes into channels-last in one pass.
// What the window shows beyond the image is black, as if it had been padded before normalising.
template <int64_t kChannels, class Element, class Table>
void show(const ByteImage& image, const View& view, const ImageShape& shape, const Table& table,
          Element* to) {
  const int64_t width = shape.width;
  const int64_t begin = std::clamp<int64_t>(-view.shift_x, 0, width);
  const int64_t end = std::clamp<int64_t>(width - view.shift_x, 0, width);
  const auto blacken = [&](Element* row, int64_t from, int64_t until) {
    for (int64_t x = from; x < until; ++x) {
      for (int64_t c = 0; c < kChannels; ++c) row[x * kChannels + c] = table[c][0];
    }
  };
  for (int64_t y = 0; y < shape.height; ++y) {
    auto* row = to + y * width * kChannels;
    const int64_t source_y = y + view.shift_y;
    if (source_y < 0 || source_y >= shape.height) {
      blacken(row, 0, width);
      continue;
    }
    const auto* source = image.bytes + source_y * image.row_stride;
    const int64_t step = view.is_flipped ? -image.pixel_stride : image.pixel_stride;
    // A mirrored window is the mirror image of the window: the crop is drawn before the flip.
    const int64_t from = view.is_flipped ? width - end : begin;
    const int64_t until = view.is_flipped ? width - begin : end;
    const int64_t first = (view.is_flipped ? end - 1 : begin) + view.shift_x;
    blacken(row, 0, from);
    for (int64_t x = from, at = first * image.pixel_stride; x < until; ++x, at += step) {
      for (int64_t c = 0; c < kChannels; ++c) {
        row[x * kChannels + c] = table[c][source[at + c * image.channel_stride]];
      }
    }
    blacken(row, until, width);
  }
}

template <class Element, class Table>
void show_any(const ByteImage& image, const View& view, const ImageShape& shape, const Table& table,
              Element* to) {
  if (shape.channels == 1) show<1>(image, view, shape, table, to);
  if (shape.channels == 2) show<2>(image, view, shape, table, to);
  if (shape.channels == 3) show<3>(image, view, shape, table, to);
}

}  // namespace

std::vector<int64_t> epoch_order(uint64_t seed, int64_t epoch, int64_t samples) {
  return permutation(scramble(seed + static_cast<uint64_t>(epoch)), samples);
}

std::vector<int64_t> fixed_sample(uint64_t seed, int64_t count, int64_t samples) {
  auto order = shuffled_sample(seed, count, samples);
  std::sort(order.begin(), order.end());
  return order;
}

std::vector<int64_t> shuffled_sample(uint64_t seed, int64_t count, int64_t samples) {
  auto order = permutation(seed, samples);
  order.resize(static_cast<size_t>(std::min(count, samples)));
  return order;
}

BatchMaker::BatchMaker(const std::array<double, 3>& mean, const std::array<double, 3>& std_dev,
                       const BatchOptions& options)
    : options_(options) {
  check(options.type == torch::kFloat32 || options.type == torch::kBFloat16,
        "BatchMaker: batches are float32 or bfloat16, not ", c10::toString(options.type));
  check(options.views >= 1, "BatchMaker: views must be at least 1, got ", options.views);
  for (size_t channel = 0; channel < 3; ++channel) {
    check(std_dev.at(channel) > 0, "BatchMaker: deviation must be above 0, got ",
          std_dev.at(channel));
    const auto scale = static_cast<float>(1 / (255 * std_dev.at(channel)));
    const auto shift = static_cast<float>(-mean.at(channel) / std_dev.at(channel));
    for (size_t byte = 0; byte < 256; ++byte) {
      const float value = static_cast<float>(byte) * scale + shift;
      floats_.at(channel).at(byte) = value;
      bfloats_.at(channel).at(byte) = value;
    }
  }
}

BatchMaker::BatchMaker(const Dataset& dataset, BatchOptions options)
    : BatchMaker(dataset.mean, dataset.std_dev, [&] {
        options.upsample_to = dataset.upsample_to;
        return options;
      }()) {}

template <class Element>
void BatchMaker::fill(const Table<Element>& table, const Images& images,
                      const std::vector<int64_t>& indices, int64_t epoch, Element* batch) const {
  const auto shape = images.shape();
  const auto area = shape.height * shape.width;
  const auto image_size = shape.channels * area;
  const auto one = [&](int64_t i, std::vector<uint8_t>& decoded) {
    const auto images_shown = static_cast<int64_t>(indices.size());
    const auto index = indices[static_cast<size_t>(i % images_shown)];
    auto stream = view_stream(options_.seed, epoch, index, i / images_shown);
    const auto view = draw_view(options_.augmentation, stream);
    if (!images.files) {
      const ByteImage image{.bytes = images.pixels.data_ptr<uint8_t>() + index * image_size,
                            .channel_stride = area,
                            .row_stride = shape.width,
                            .pixel_stride = 1};
      show_any(image, view, shape, table, batch + i * image_size);
      return;
    }
    decoded.resize(static_cast<size_t>(image_size));
    if (options_.augmentation == Augmentation::resized_crop_flip) {
      images.files->decode_random(index, stream, decoded);
    } else {
      images.files->decode_middle(index, decoded);
    }
    const ByteImage image{.bytes = decoded.data(),
                          .channel_stride = 1,
                          .row_stride = shape.width * shape.channels,
                          .pixel_stride = shape.channels};
    show_any(image, view, shape, table, batch + i * image_size);
  };
  const auto some = [&](int64_t begin, int64_t end) {
    std::vector<uint8_t> decoded;
    for (int64_t i = begin; i < end; ++i) one(i, decoded);
  };
  const auto count = options_.views * static_cast<int64_t>(indices.size());
  if (images.files || options_.on_all_cores) {
    parallel_for(0, count, images.files ? 1 : 16, some);
  } else {
    some(0, count);
  }
}

Batch BatchMaker::make(const Images& images, const std::vector<int64_t>& indices,
                       int64_t epoch) const {
  const auto count = static_cast<int64_t>(indices.size());
  const auto [least, most] = std::minmax_element(indices.begin(), indices.end());
  check(!indices.empty() && *least >= 0 && *most < images.size(),
        "BatchMaker: indices must be in [0, ", images.size(), ") and at least one");
  const auto shape = images.shape();
  check(shape.channels <= 3, "BatchMaker: images must have at most 3 channels, got ",
        shape.channels);
  check(images.files || options_.augmentation != Augmentation::resized_crop_flip,
        "data.augment: resized-crop-flip is for images on disk; for images in memory there is "
        "crop-flip");
  auto batch = torch::empty(
      {options_.views * count, shape.channels, shape.height, shape.width},
      torch::TensorOptions(options_.type).memory_format(torch::MemoryFormat::ChannelsLast));
  if (options_.type == torch::kBFloat16) {
    fill(bfloats_, images, indices, epoch, batch.data_ptr<c10::BFloat16>());
  } else {
    fill(floats_, images, indices, epoch, batch.data_ptr<float>());
  }
  if (options_.upsample_to > 0) {
    batch = torch::upsample_bilinear2d(batch, {options_.upsample_to, options_.upsample_to},
                                       /*align_corners=*/false);
  }
  auto labels = torch::empty({count}, torch::kInt64);
  const auto* all_labels = images.labels.data_ptr<int64_t>();
  std::transform(indices.begin(), indices.end(), labels.data_ptr<int64_t>(),
                 [&](int64_t index) { return all_labels[index]; });
  return {.images = batch, .labels = labels.repeat({options_.views})};
}

}  // namespace kelvin
