#include "kelvin/experiment/run/trajectory.h"

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "kelvin/core/check.h"
#include "kelvin/core/json_fields.h"
#include "kelvin/core/seeds.h"
#include "kelvin/data/batches.h"
#include "kelvin/experiment/evaluate/extract.h"
#include "kelvin/measures/input_gram.h"

namespace kelvin {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kBasicMeasures = {"accuracy", "logits_norm", "solution_rank",
                                       "post_softmax_rank", "loss_symmetry"};

// Of the test split, under the same name in a line of metrics.
constexpr std::array kFields = {"logits_norm",       "logits_norm_over_t", "logits_norm_per_sample",
                                "solution_rank",     "post_softmax_rank",  "entropy_ratio",
                                "loss_spread",       "loss_distance",      "probability_cosine",
                                "gradient_diversity"};

// The first reading of a name is the default one; later ones are its variants.
const Reading* find(const Readings& readings, const std::string& name, const std::string& split) {
  for (const auto& reading : readings) {
    if (reading.name == name && reading.split == split) return &reading;
  }
  return nullptr;
}

double value_of(const Readings& readings, const std::string& name, const std::string& split) {
  const auto* reading = find(readings, name, split);
  check(reading != nullptr, "metrics: no reading '", name, "' of split ", split);
  return reading->value;
}

struct OodLook {
  const Dataset& own;
  const RunSettings& settings;
  bool is_fresh = false;  // batch normalisations know nothing of the data yet
};

void show_ood_test(const OodLook& look, const Dataset& ood, Model& model, MeasureSet& measures) {
  const auto seed = derive_seed(static_cast<uint64_t>(look.settings.seed), "epoch metrics");
  const auto& needs = measures.needs();
  auto sample = shuffled_sample(seed, look.settings.measure.epoch_samples, ood.test.size());
  const bool uses_batches = look.is_fresh && sample.size() > 1;
  if (!uses_batches) std::sort(sample.begin(), sample.end());
  extract(model, ood, look.own,
          {.split = Split::test,
           .is_ood = true,
           .with_layers = needs.layers,
           .with_attention = needs.attention,
           .batch_statistics = uses_batches,
           .indices = sample},
          [&](const Record& record) { measures.update(record); });
}

}  // namespace

std::vector<int64_t> log_spaced_steps(int64_t per_decade, int64_t total) {
  std::set<int64_t> steps;
  for (int64_t i = 0; per_decade > 0; ++i) {
    const auto step =
        std::llround(std::pow(10.0, static_cast<double>(i) / static_cast<double>(per_decade)));
    if (step > total) break;
    steps.insert(step);
  }
  return {steps.begin(), steps.end()};
}

SeenBefore seen_before(const std::vector<Json>& metrics, const std::string& origin) {
  check(!metrics.empty(), origin, ": has no line of what training is to go on from");
  const JsonFields first(metrics.front(), origin + ": line 1");
  const JsonFields last(metrics.back(), origin + ": line " + std::to_string(metrics.size()));
  return {.first_norm = first.number("logits_norm"),
          .last_norm = last.number("logits_norm"),
          .test_accuracy = last.number("test_accuracy")};
}

Trajectory::Trajectory(const Dataset& dataset, const std::vector<Dataset>& ood,
                       const RunSettings& settings, const RunLog& log, const RunContext& context)
    : dataset_(dataset), ood_(ood), settings_(settings), log_(log), context_(context) {
  const auto seed = derive_seed(static_cast<uint64_t>(settings.seed), "epoch metrics");
  train_sample_ = shuffled_sample(seed, settings.measure.epoch_samples, dataset.train.size());
  test_sample_ = shuffled_sample(seed, settings.measure.epoch_samples, dataset.test.size());
}

double Trajectory::seconds() const {
  return seconds_before_ + context_.seconds() - start_ - observing_;
}

void Trajectory::before_training(const TrainState& state) {
  start_ = context_.seconds();
  log_spaced_ = log_spaced_steps(settings_.measure.steps_per_decade, state.total_steps);
  check_memory(state);
  if (state.step == 0) {
    observe(state, /*epoch=*/0, /*is_epoch_end=*/false);
    first_norm_ = last_norm_;
    return;
  }
  const auto seen = seen_before(log_.metrics(), "metrics.jsonl");
  first_norm_ = seen.first_norm;
  last_norm_ = seen.last_norm;
  test_accuracy_ = seen.test_accuracy;
}

void Trajectory::after_step(const TrainState& state) {
  if (state.step % state.steps_per_epoch == 0) return;  // after_epoch looks at this one
  if (!std::binary_search(log_spaced_.begin(), log_spaced_.end(), state.step)) return;
  observe(state, static_cast<double>(state.step) / static_cast<double>(state.steps_per_epoch),
          /*is_epoch_end=*/false);
}

void Trajectory::after_epoch(const TrainState& state) {
  observe(state, static_cast<double>(state.epoch), /*is_epoch_end=*/true);
}

void Trajectory::show_ood(Model& model, MeasureSet& measures) const {
  for (const auto& dataset : ood_) {
    show_ood_test({.own = dataset_, .settings = settings_}, dataset, model, measures);
  }
}

// Said before hours of training rather than in the middle of them.
void Trajectory::check_memory(const TrainState& state) const {
  const auto measures = measures_for(state);
  const auto& needs = measures.needs();
  Record example;
  extract(state.model, dataset_, dataset_,
          {.with_layers = needs.layers, .with_attention = needs.attention, .indices = {0}},
          [&](const Record& record) { example = record; });
  const auto samples = static_cast<int64_t>(train_sample_.size() + test_sample_.size());
  measures.checked_memory(example, samples, settings_.measure.memory);
}

void Trajectory::check_finite(const TrainState& state, const Record& record) {
  const bool is_finite = torch::isfinite(record.logits).all().item<bool>();
  check(is_finite || state.step > 0,
        "init: the logits before the first step must be finite, hold NaN or infinity");
  check(is_finite, "train: the logits after step ", state.step,
        " must be finite, hold NaN or infinity (T = ", state.temperature,
        ", lr = ", state.learning_rate, "); try a smaller lr or a longer warm-up");
}

double Trajectory::loss_sum(const TrainState& state, const Record& record) const {
  torch::NoGradGuard no_grad;
  const auto temperature = torch::tensor(state.temperature, torch::kFloat64);
  return settings_.train.loss(record.logits.to(torch::kFloat64), record.labels, temperature)
      .sample_losses.sum()
      .item<double>();
}

// Where steps spread in their logarithm are asked for, what takes longer is measured at these, at
// the beginning and at the end; the metrics of all other epochs go without.
bool Trajectory::is_close_look(const TrainState& state) const {
  return log_spaced_.empty() || state.step == 0 || state.step == state.total_steps ||
         std::binary_search(log_spaced_.begin(), log_spaced_.end(), state.step);
}

MeasureSet Trajectory::measures_for(const TrainState& state) const {
  auto context = settings_.context();
  context.temperature = state.temperature;
  context.test_samples = static_cast<int64_t>(test_sample_.size());
  context.input_grams = std::make_shared<SharedInputGrams>();
  MeasureSet measures;
  for (const char* name : kBasicMeasures) {
    measures.add(name, settings_.make_measure(name, context));
  }
  if (!is_close_look(state)) return measures;
  for (const auto& name : settings_.measure.during) {
    if (std::find(kBasicMeasures.begin(), kBasicMeasures.end(), name) != kBasicMeasures.end()) {
      continue;
    }
    measures.add(name, settings_.make_measure(name, context));
  }
  return measures;
}

// What a few samples or the gradients say; the samples are a part of those that metrics are of.
void Trajectory::look_closely(const TrainState& state, MeasureSet& measures,
                              bool uses_batches) const {
  const auto& needs = measures.needs();
  const auto first_of = [](const std::vector<int64_t>& sample, int64_t count) {
    const auto end = std::min(static_cast<std::ptrdiff_t>(sample.size()), count);
    return std::vector<int64_t>(sample.begin(), sample.begin() + end);
  };
  if (needs.sample > 0) {
    extract(state.model, dataset_, dataset_,
            {.with_layers = needs.layers,
             .with_attention = needs.attention,
             .batch_statistics = uses_batches,
             .indices = first_of(test_sample_, needs.sample)},
            [&](const Record& record) {
              check_finite(state, record);
              measures.see_sample(record);
            });
  }
  if (needs.gradients) {
    measures.see_gradients(
        extract_gradients(state.model, dataset_,
                          {.indices = first_of(train_sample_, settings_.measure.gradient_samples),
                           .loss = settings_.loss_at(state.temperature),
                           .batch_statistics = uses_batches}));
  }
}

Trajectory::Observed Trajectory::measured(const TrainState& state, bool is_first) const {
  Observed observed;
  auto measures = measures_for(state);
  const auto& needs = measures.needs();
  // Batch normalisations know nothing of the data before the first step.
  const bool is_fresh = is_first && settings_.init.pretrained.empty();
  const auto show = [&](Split split, bool is_again = false) {
    auto sample = split == Split::train ? train_sample_ : test_sample_;
    const bool uses_batches = is_fresh && sample.size() > 1;
    // In their own order, what is of the whole test split has the very bits of the readings.
    if (!uses_batches) std::sort(sample.begin(), sample.end());
    extract(state.model, dataset_, dataset_,
            {.split = split,
             .with_layers = split == Split::train ? measures.needs_train_layers() : needs.layers,
             .with_attention = needs.attention,
             .batch_statistics = uses_batches,
             .indices = sample},
            [&](const Record& record) {
              check_finite(state, record);
              if (split == Split::train && !is_again) {
                observed.train_loss += loss_sum(state, record);
              }
              measures.update(record);
            });
  };
  look_closely(state, measures, is_fresh && test_sample_.size() > 1);
  show(Split::train);
  while (measures.wants_train_again()) show(Split::train, /*is_again=*/true);
  show(Split::test);
  observed.train_loss /= static_cast<double>(train_sample_.size());
  if (needs.ood && is_fresh) {
    for (const auto& ood : ood_) {
      show_ood_test({.own = dataset_, .settings = settings_, .is_fresh = true}, ood, state.model,
                    measures);
    }
  } else if (needs.ood) {
    show_ood(state.model, measures);
  }
  while (measures.wants_another_pass()) show(Split::test);
  observed.readings = measures.compute();
  observed.curves = measures.curves_of_snapshot();
  return observed;
}

void Trajectory::observe(const TrainState& state, double epoch, bool is_epoch_end) {
  const double began = context_.seconds();
  const double training = seconds_before_ + began - start_ - observing_;
  const auto [readings, curves, train_loss] = [&] {
    const UsedWeights used(state);
    return measured(state, state.step == 0);
  }();
  last_norm_ = value_of(readings, "logits_norm", "test");
  test_accuracy_ = value_of(readings, "accuracy", "test");
  observing_ += context_.seconds() - began;

  Json line = {{"step", state.step}};
  if (epoch == std::floor(epoch)) {
    line["epoch"] = static_cast<int64_t>(epoch);
  } else {
    line["epoch"] = epoch;
  }
  line["temperature"] = state.temperature;
  line["lr"] = state.learning_rate;
  line["loss"] = is_epoch_end ? state.loss : train_loss;
  line["train_loss"] = train_loss;
  line["train_accuracy"] = value_of(readings, "accuracy", "train");
  line["test_accuracy"] = test_accuracy_;
  line["test_loss"] = value_of(readings, "nll", "test");
  for (const char* name : kFields) {
    if (const auto* reading = find(readings, name, "test")) line[name] = reading->value;
  }
  line["seconds"] = training;
  line["images_per_second"] = training > 0 ? static_cast<double>(state.images) / training : 0;
  log_.add_curves(state.step, curves);
  log_.add_trajectory(state.step, epoch, readings);
  log_.add_metrics(line);
}

std::optional<Reading> Trajectory::norm_growth() const {
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

}  // namespace kelvin
