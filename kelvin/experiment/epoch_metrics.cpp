#include "kelvin/experiment/epoch_metrics.h"

#include <algorithm>
#include <map>

#include "kelvin/core/check.h"
#include "kelvin/core/npz_file.h"
#include "kelvin/core/seeds.h"
#include "kelvin/data/batches.h"
#include "kelvin/representations/extract.h"

namespace kelvin {
namespace {

Array array_of(const std::vector<double>& values, std::vector<int64_t> shape) {
  return {.dtype = "f8",
          .shape = std::move(shape),
          .bytes = {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)}};
}

// The first reading of a name is the default one; later ones are its variants.
double value_of(const Readings& readings, const std::string& name, const std::string& split) {
  for (const auto& reading : readings) {
    if (reading.name == name && reading.split == split) return reading.value;
  }
  check(false, "epoch metrics: no reading '", name, "' of split ", split);
  return 0;
}

}  // namespace

EpochMetrics::EpochMetrics(const Dataset& dataset, const RunSettings& settings,
                           const RunFolder& folder, const RunContext& context)
    : dataset_(dataset), settings_(settings), folder_(folder), context_(context) {
  const auto seed = named_seed(static_cast<uint64_t>(settings.seed), "epoch metrics");
  train_sample_ = shuffled_sample(seed, settings.measure.epoch_samples, dataset.train.size());
  test_sample_ = shuffled_sample(seed, settings.measure.epoch_samples, dataset.test.size());
}

void EpochMetrics::before_training(const TrainState& state) {
  start_ = context_.seconds();
  observe(state);
  first_norm_ = last_norm_;
}

void EpochMetrics::after_epoch(const TrainState& state) { observe(state); }

void EpochMetrics::observe(const TrainState& state) {
  const double began = context_.seconds();
  std::vector<std::unique_ptr<Measure>> measures;
  for (const char* name : {"accuracy", "logits_norm", "solution_rank", "post_softmax_rank"}) {
    measures.push_back(settings_.make_measure(name));
  }
  // Batch normalisations know nothing of the data before the first step.
  const bool is_fresh = state.step == 0 && settings_.init.pretrained.empty();
  for (const auto split : {Split::train, Split::test}) {
    auto sample = split == Split::train ? train_sample_ : test_sample_;
    const bool uses_batches = is_fresh && sample.size() > 1;
    // In their own order, the last line has the very bits of the readings.
    if (!uses_batches) std::sort(sample.begin(), sample.end());
    extract(state.model, dataset_, dataset_,
            {.split = split, .batch_statistics = uses_batches, .indices = sample},
            [&](const Record& record) {
              for (auto& measure : measures) measure->update(record);
            });
  }
  Readings readings;
  for (const auto& measure : measures) {
    for (auto& reading : measure->compute()) readings.push_back(std::move(reading));
  }

  std::vector<double> spectrum;
  for (const auto& reading : readings) {
    if (reading.name == "singular_value") spectrum.push_back(reading.value);
  }
  epochs_.push_back(static_cast<double>(state.epoch));
  spectra_.push_back(std::move(spectrum));
  last_norm_ = value_of(readings, "logits_norm", "test");

  const double training = began - start_ - observing_;
  observing_ += context_.seconds() - began;
  nlohmann::ordered_json line = {{"step", state.step},
                                 {"epoch", state.epoch},
                                 {"temperature", settings_.train.temperature},
                                 {"lr", state.rate}};
  line["loss"] = state.epoch > 0 ? state.loss : value_of(readings, "nll", "train");
  line["train_accuracy"] = value_of(readings, "accuracy", "train");
  line["test_accuracy"] = value_of(readings, "accuracy", "test");
  line["test_loss"] = value_of(readings, "nll", "test");
  for (const char* name : {"logits_norm", "logits_norm_over_t", "logits_norm_per_sample",
                           "solution_rank", "post_softmax_rank"}) {
    line[name] = value_of(readings, name, "test");
  }
  line["seconds"] = training;
  line["images_per_second"] = training > 0 ? static_cast<double>(state.images) / training : 0;
  folder_.append_metrics(line);
}

std::optional<Reading> EpochMetrics::norm_growth() const {
  if (first_norm_ == 0) return std::nullopt;
  return Reading{.name = "logits_norm_growth",
                 .value = last_norm_ / first_norm_,
                 .split = "test",
                 .definition = {{"matrix", "logits M"},
                                {"norm", "Frobenius"},
                                {"ratio", "last epoch over initialisation"},
                                {"mode", settings_.init.pretrained.empty()
                                             ? "evaluation; batch statistics at initialisation"
                                             : "evaluation"},
                                {"samples", test_sample_.size()}}};
}

void EpochMetrics::write_curves() const {
  const auto lines = static_cast<int64_t>(spectra_.size());
  const auto width = static_cast<int64_t>(spectra_.front().size());
  std::vector<double> flat;
  for (const auto& spectrum : spectra_) flat.insert(flat.end(), spectrum.begin(), spectrum.end());
  write_npz(folder_.path() / "curves.npz",
            {{"epochs", array_of(epochs_, {lines})},
             {"logits_singular_values", array_of(flat, {lines, width})}});
}

}  // namespace kelvin
