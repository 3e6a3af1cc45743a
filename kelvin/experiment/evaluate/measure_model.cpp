#include "kelvin/experiment/evaluate/measure_model.h"

#include <torch/torch.h>

#include <algorithm>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/data/batches.h"
#include "kelvin/experiment/evaluate/extract.h"
#include "kelvin/experiment/evaluate/view_scores.h"
#include "kelvin/measures/input_gram.h"

namespace kelvin {
namespace {

// Of all test samples, and of some training samples.
class SplitRecords : public NetworkRecords {
 public:
  SplitRecords(Model& model, const Dataset& own, const std::vector<Dataset>& ood,
               const RunSettings& settings, const RunContext& context)
      : NetworkRecords(model, own, ood), settings_(settings), context_(context) {}

 protected:
  void choose(const Pass& pass, const Images& images, ExtractOptions& options) const override {
    if (pass.sample > 0) options.indices = shuffled_sample(seed(), pass.sample, images.size());
    if (pass.split == Split::train) options.indices = train_order(images, pass.repetition);
  }

  GradientOptions for_gradients() const override {
    const auto& train = own().train;
    check(train.size() > 0, "dataset '", own().name,
          "' has no training images, which the gradients of the loss are taken on");
    return {.indices = shuffled_sample(seed(), settings_.measure.gradient_samples, train.size()),
            .loss = settings_.loss_at(settings_.context().temperature),
            .views = views_of(settings_.train, seed())};
  }

  void look_at(const Pass& /*pass*/, const Record& /*record*/) override { stop_if_asked(context_); }

 private:
  uint64_t seed() const { return derive_seed(settings_.context().seed, "measure"); }

  // Every repetition has its own order, which does not follow that of the dataset: some are sorted
  // by class, and who learns from a stream would learn one class after another.
  std::vector<int64_t> train_order(const Images& images, int64_t repetition) const {
    auto sample = shuffled_sample(seed(), settings_.measure.train_samples, images.size());
    if (repetition == 0) return sample;
    std::vector<int64_t> indices;
    indices.reserve(sample.size());
    for (const auto place : epoch_order(seed(), repetition, static_cast<int64_t>(sample.size()))) {
      indices.push_back(sample[static_cast<size_t>(place)]);
    }
    return indices;
  }

  const RunSettings& settings_;
  const RunContext& context_;
};

MeasureSet measures_of(const RunSettings& settings, const Dataset& dataset,
                       const std::vector<Dataset>& ood) {
  auto known = settings.context();
  known.test_samples = dataset.test.size();
  known.most_classes = known.all_classes = dataset.classes;
  for (const auto& each : ood) {
    known.most_classes = std::max(known.most_classes, each.classes);
    known.all_classes += each.classes;
  }
  known.input_grams = std::make_shared<SharedInputGrams>();
  MeasureSet measures;
  for (const auto& name : settings.measure.names) {
    measures.add(name, settings.make_measure(name, known));
  }
  return measures;
}

Detection detectors_of(const RunSettings& settings) {
  Detection detection;
  const auto& asked = settings.measure.detectors;
  const bool is_optional = asked == std::vector<std::string>{kAllDetectors};
  for (const auto& name : detector_names(asked)) {
    auto detector = settings.make_detector(name);
    if (is_optional && detector->needs().classifier && !settings.train.loss.classifies()) continue;
    detection.add(std::move(detector), is_optional);
  }
  return detection;
}

// Said before anything is held; `example` is a record of one sample.
void count_memory(const Record& example, const MeasureSet& measures, const Detection& detection,
                  const Dataset& dataset, const std::vector<Dataset>& ood,
                  const RunSettings& settings, const RunContext& context) {
  const auto& needs = measures.needs();
  const auto train_sample = [&](const Dataset& of) -> int64_t {
    if (!needs.train_split && detection.is_empty()) return 0;
    return std::min(settings.measure.train_samples, of.train.size());
  };
  auto samples = dataset.test.size() + train_sample(dataset);
  for (const auto& each : ood) {
    if (needs.ood) samples += each.test.size();
    if (measures.needs_ood_training()) samples += train_sample(each);
  }
  const auto for_detectors = detection.memory(example, train_sample(dataset));
  const auto bytes = for_detectors + measures.checked_memory(
                                         example, samples, settings.measure.memory - for_detectors);
  context.inform_of_memory("measures hold", bytes, settings.measure.memory);
}

}  // namespace

Measured measure_model(Model& model, const Dataset& dataset, const std::vector<Dataset>& ood,
                       const RunSettings& settings, const RunContext& context) {
  SplitRecords records(model, dataset, ood, settings, context);
  auto measures = measures_of(settings, dataset, ood);
  auto detection = ood.empty() ? Detection() : detectors_of(settings);
  count_memory(records.example(measures.needs()), measures, detection, dataset, ood, settings,
               context);
  show_all(records, measures, detection, context);
  return results_of(measures, detection, settings.measure.groups, context);
}

}  // namespace kelvin
