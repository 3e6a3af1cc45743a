#include "kelvin/experiment/evaluate/view_scores.h"

#include <torch/types.h>
#include <torch/utils.h>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/experiment/evaluate/extract.h"
#include "kelvin/model/modes.h"

namespace kelvin {

BatchOptions views_of(const TrainOptions& train, uint64_t seed) {
  if (train.loss.classifies()) return {};
  return {.augmentation = train.augmentation,
          .seed = derive_seed(seed, "measured views"),
          .views = train.loss.views};
}

ViewScores view_scores(Model& model, const Images& images, const Dataset& trained_on,
                       const TrainOptions& train, const ViewOptions& options) {
  check(!train.loss.classifies(), "view_scores: needs a loss that compares views");
  check(!options.indices.empty(), "view_scores: needs at least one image, got none");
  const torch::NoGradGuard no_grad;
  const MeasuringMode mode(model, options.batch_statistics);
  const BatchMaker batches(trained_on, views_of(train, options.seed));
  const auto device = model.parameters().front().device();
  const auto temperature = torch::tensor(options.temperature, torch::kFloat64);
  const auto samples = static_cast<int64_t>(options.indices.size());
  const auto bounds = equal_batches(samples, train.batch_size);
  ViewScores sums;
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    const auto batch = batches.make(
        images, {options.indices.begin() + bounds[i], options.indices.begin() + bounds[i + 1]});
    const auto targets = train.loss.targets(batch.labels).to(device);
    const auto values = train.loss(model.forward(batch.images.to(device)).to(torch::kFloat64),
                                   targets, temperature);
    sums.loss += values.sample_losses.sum().item<double>();
    sums.accuracy += (values.predictions == targets).sum().item<double>();
  }
  const auto views = static_cast<double>(samples * train.loss.views);
  return {.loss = sums.loss / views, .accuracy = sums.accuracy / views};
}

}  // namespace kelvin
