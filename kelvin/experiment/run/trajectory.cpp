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

// Those that need a classifier only where there is one.
constexpr std::array kBasicMeasures = {"accuracy", "logits_norm", "solution_rank",
                                       "post_softmax_rank", "loss_symmetry"};

const char* test_accuracy_field(bool classifies) {
  return classifies ? "test_accuracy" : "test_view_accuracy";
}

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

std::vector<int64_t> first_of(const std::vector<int64_t>& sample, int64_t count) {
  const auto end = std::min(static_cast<std::ptrdiff_t>(sample.size()), count);
  return {sample.begin(), sample.begin() + end};
}

uint64_t seed_of(const RunSettings& settings) {
  return derive_seed(static_cast<uint64_t>(settings.seed), "epoch metrics");
}

std::vector<int64_t> snapshot_sample(const RunSettings& settings, const Images& images) {
  return shuffled_sample(seed_of(settings), settings.measure.epoch_samples, images.size());
}

// Batch normalisations know nothing of the data before the first step.
bool is_fresh(const TrainState& state, const RunSettings& settings) {
  return state.step == 0 && settings.init.pretrained.empty();
}

// Of the same sample of each split whenever it is looked at.
class SnapshotRecords : public NetworkRecords {
 public:
  SnapshotRecords(const TrainState& state, const Dataset& own, const std::vector<Dataset>& ood,
                  const RunSettings& settings)
      : NetworkRecords(state.model, own, ood),
        state_(state),
        settings_(settings),
        is_fresh_(is_fresh(state, settings)) {}

  // That is trained with, summed over the sample of the training split.
  double train_loss() const { return train_loss_; }

 protected:
  void choose(const Pass& pass, const Images& images, ExtractOptions& options) const override {
    auto& chosen = options.indices;
    chosen = snapshot_sample(settings_, images);
    options.batch_statistics = is_fresh_ && chosen.size() > 1;
    if (pass.sample > 0) {
      chosen = first_of(chosen, pass.sample);
    } else if (!options.batch_statistics) {
      // In their own order, what is of the whole test split has the very bits of the readings.
      std::sort(chosen.begin(), chosen.end());
    }
  }

  GradientOptions for_gradients() const override {
    return {.indices = first_of(snapshot_sample(settings_, own().train),
                                settings_.measure.gradient_samples),
            .loss = settings_.loss_at(state_.temperature),
            .batch_statistics = is_fresh_ && own().test.size() > 1,
            .views = views_of(settings_.train, seed_of(settings_))};
  }

  void look_at(const Pass& pass, const Record& record) override {
    if (pass.ood) return;
    check_finite_logits(record);
    const bool is_train = pass.split == Split::train && pass.repetition == 0;
    if (is_train && settings_.train.loss.classifies()) train_loss_ += loss_sum(record);
  }

 private:
  void check_finite_logits(const Record& record) const {
    const bool is_finite = torch::isfinite(record.logits).all().item<bool>();
    check(is_finite || state_.step > 0,
          "init: the logits before the first step must be finite, hold NaN or infinity");
    check(is_finite, "train: the logits after step ", state_.step,
          " must be finite, hold NaN or infinity (T = ", state_.temperature,
          ", lr = ", state_.learning_rate, "); try a smaller lr or a longer warm-up");
  }

  double loss_sum(const Record& record) const {
    const auto temperature = torch::tensor(state_.temperature, torch::kFloat64);
    return settings_.train.loss(record.logits.to(torch::kFloat64), record.labels, temperature)
        .sample_losses.sum()
        .item<double>();
  }

  const TrainState& state_;
  const RunSettings& settings_;
  const bool is_fresh_;
  double train_loss_ = 0;
};

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

SeenBefore seen_before(const std::vector<Json>& metrics, bool classifies,
                       const std::string& origin) {
  check(!metrics.empty(), origin, ": has no line of what training is to go on from");
  const JsonFields first(metrics.front(), origin + ": line 1");
  const JsonFields last(metrics.back(), origin + ": line " + std::to_string(metrics.size()));
  return {.first_norm = first.number("logits_norm"),
          .last_norm = last.number("logits_norm"),
          .test_accuracy = last.number(test_accuracy_field(classifies))};
}

Trajectory::Trajectory(const Dataset& dataset, const std::vector<Dataset>& ood,
                       const RunSettings& settings, const RunLog& log, const RunContext& context)
    : dataset_(dataset), ood_(ood), settings_(settings), log_(log), context_(context) {
  train_samples_ = std::min(settings.measure.epoch_samples, dataset.train.size());
  test_samples_ = std::min(settings.measure.epoch_samples, dataset.test.size());
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
  const auto seen = seen_before(log_.metrics(), settings_.train.loss.classifies(), "metrics.jsonl");
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

// Said before hours of training rather than in the middle of them.
void Trajectory::check_memory(const TrainState& state) const {
  const auto measures = measures_for(state);
  const auto example = SnapshotRecords(state, dataset_, ood_, settings_).example(measures.needs());
  measures.checked_memory(example, train_samples_ + test_samples_, settings_.measure.memory);
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
  context.test_samples = test_samples_;
  context.input_grams = std::make_shared<SharedInputGrams>();
  MeasureSet measures;
  for (const char* name : kBasicMeasures) {
    const bool fits =
        settings_.train.loss.classifies() || !kelvin::measures().find(name).needs_classifier;
    if (!fits) continue;
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

Trajectory::Observed Trajectory::measured(const TrainState& state) const {
  auto measures = measures_for(state);
  Detection no_detectors;
  SnapshotRecords records(state, dataset_, ood_, settings_);
  show_all(records, measures, no_detectors, context_);
  Observed observed{.readings = measures.compute(), .curves = measures.curves_of_snapshot()};
  if (!settings_.train.loss.classifies()) {
    observed.train = view_scores_of(state, dataset_.train);
    observed.test = view_scores_of(state, dataset_.test);
    return observed;
  }
  const auto value = [&](const char* name, const char* split) {
    return value_of(observed.readings, name, split);
  };
  observed.train = {.loss = records.train_loss() / static_cast<double>(train_samples_),
                    .accuracy = value("accuracy", "train")};
  observed.test = {.loss = value("nll", "test"), .accuracy = value("accuracy", "test")};
  return observed;
}

ViewScores Trajectory::view_scores_of(const TrainState& state, const Images& images) const {
  return view_scores(state.model, images, dataset_, settings_.train,
                     {.indices = snapshot_sample(settings_, images),
                      .temperature = state.temperature,
                      .seed = seed_of(settings_),
                      .batch_statistics = is_fresh(state, settings_)});
}

void Trajectory::observe(const TrainState& state, double epoch, bool is_epoch_end) {
  const double began = context_.seconds();
  const double training = seconds_before_ + began - start_ - observing_;
  const auto [readings, curves, train, test] = [&] {
    const UsedWeights used(state);
    return measured(state);
  }();
  last_norm_ = value_of(readings, "logits_norm", "test");
  test_accuracy_ = test.accuracy;
  observing_ += context_.seconds() - began;

  Json line = {{"step", state.step}};
  if (epoch == std::floor(epoch)) {
    line["epoch"] = static_cast<int64_t>(epoch);
  } else {
    line["epoch"] = epoch;
  }
  line["temperature"] = state.temperature;
  line["lr"] = state.learning_rate;
  line["loss"] = is_epoch_end ? state.loss : train.loss;
  line["train_loss"] = train.loss;
  const bool classifies = settings_.train.loss.classifies();
  line[classifies ? "train_accuracy" : "train_view_accuracy"] = train.accuracy;
  line[test_accuracy_field(classifies)] = test_accuracy_;
  line["test_loss"] = test.loss;
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
                                {"samples", test_samples_}}};
}

}  // namespace kelvin
