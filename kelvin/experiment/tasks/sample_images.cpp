#include "kelvin/experiment/tasks/sample_images.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/data/batches.h"
#include "kelvin/data/subset.h"
#include "kelvin/experiment/config/run_settings.h"

namespace kelvin {
namespace {

constexpr std::array<double, 3> kZeros = {0, 0, 0};
constexpr std::array<double, 3> kOnes = {1, 1, 1};

std::vector<int64_t> sorted_by_class(std::vector<int64_t> indices, const torch::Tensor& labels) {
  const auto* label_of = labels.data_ptr<int64_t>();
  std::stable_sort(indices.begin(), indices.end(),
                   [&](int64_t a, int64_t b) { return label_of[a] < label_of[b]; });
  return indices;
}

}  // namespace

ImageSamples sample_images(const Config& config, int64_t count, bool of_training,
                           const RunContext& context) {
  check(count >= 1, "sample_images: count must be at least 1, got ", count);
  const auto settings = RunSettings::from(config);
  auto request = settings.request;
  request.data_folder = context.data_folder;
  const auto dataset = load_dataset(settings.dataset, request);
  const auto& images = of_training ? dataset.train : dataset.test;
  check(images.size() > 0, "dataset '", dataset.name, "' has no training images");
  const auto seed = derive_seed(static_cast<uint64_t>(settings.seed), "sample");
  const auto indices =
      sorted_by_class(balanced_sample(images.labels, dataset.classes, count, seed), images.labels);

  // Not normalised: the batch holds pixels in [0, 1], which are bytes again after rounding.
  const BatchMaker batches(
      kZeros, kOnes,
      {.augmentation = of_training ? settings.train.augmentation : Augmentation::none,
       .seed = derive_seed(static_cast<uint64_t>(settings.seed), "augment")});
  const auto batch = batches.make(images, indices);
  const auto bytes = (batch.images * 255).round().to(torch::kUInt8).contiguous();
  const auto shape = images.shape();
  ImageSamples samples{
      .images = {.channels = shape.channels, .height = shape.height, .width = shape.width},
      .class_names = dataset.class_names};
  const auto* begin = bytes.data_ptr<uint8_t>();
  samples.images.pixels.assign(begin, begin + bytes.numel());
  const auto* labels = batch.labels.data_ptr<int64_t>();
  samples.images.labels.assign(labels, labels + batch.labels.numel());
  return samples;
}

namespace {

ImageSamples sample_images_task(const SampleImagesRequest& request, const RunContext& context) {
  return sample_images(request.config, request.count, request.of_training, context);
}

const bool sample_images_registered = add_task(sample_images_task);

}  // namespace
}  // namespace kelvin
