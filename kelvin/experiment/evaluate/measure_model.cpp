#include "kelvin/experiment/evaluate/measure_model.h"

#include <torch/torch.h>

#include <algorithm>
#include <iterator>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/core/text.h"
#include "kelvin/data/batches.h"
#include "kelvin/experiment/evaluate/detection.h"
#include "kelvin/experiment/evaluate/extract.h"
#include "kelvin/experiment/evaluate/measure_set.h"
#include "kelvin/measures/input_gram.h"
#include "kelvin/measures/measure.h"

namespace kelvin {
namespace {

void append(Readings& readings, Readings more) {
  readings.insert(readings.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
}

class Session {
 public:
  Session(Model& model, const Dataset& dataset, const std::vector<Dataset>& ood,
          const RunSettings& settings, const RunContext& context)
      : model_(model), dataset_(dataset), settings_(settings), context_(context) {
    auto known = settings.context();
    known.test_samples = dataset.test.size();
    known.most_classes = known.all_classes = dataset.classes;
    for (const auto& each : ood) {
      known.most_classes = std::max(known.most_classes, each.classes);
      known.all_classes += each.classes;
    }
    known.input_grams = std::make_shared<SharedInputGrams>();
    for (const auto& name : settings.measure.names) {
      auto measure = settings.make_measure(name, known);
      needs_ood_training_ |= needs_ood_training(*measure);
      measures_.add(name, std::move(measure));
    }
  }

  // Said before anything is held.
  void count_memory(const std::vector<Dataset>& ood) {
    const auto& needs = measures_.needs();
    auto samples = dataset_.test.size() + train_sample(dataset_);
    for (const auto& each : ood) {
      if (needs.ood) samples += each.test.size();
      if (needs_ood_training_) samples += train_sample(each);
    }
    Record example;
    extract(model_, dataset_, dataset_,
            {.with_layers = needs.layers, .with_attention = needs.attention, .indices = {0}},
            [&](const Record& record) { example = record; });
    const auto for_detectors = detection_.memory(example, train_sample(dataset_));
    const auto bytes =
        for_detectors +
        measures_.checked_memory(example, samples, settings_.measure.memory - for_detectors);
    context_.inform("measures hold at most " + byte_text(bytes) + " of the " +
                    byte_text(settings_.measure.memory) + " they may");
  }

  void use_detectors() {
    const auto& asked = settings_.measure.detectors;
    const bool is_optional = asked == std::vector<std::string>{kAllDetectors};
    for (const auto& name : detector_names(asked)) {
      detection_.add(settings_.make_detector(name), is_optional);
    }
  }

  void see_trained_dataset() {
    const auto& needs = measures_.needs();
    if (needs.sample > 0) see_sample(needs.sample);
    if (needs.train_split || !detection_.is_empty()) {
      show(dataset_, Split::train, false, [&](const Record& record) {
        if (!detection_.is_empty()) detection_.see_train(record);
      });
      show_train_again(dataset_, false);
    }
    if (!detection_.is_empty()) fit_detectors();
    show(dataset_, Split::test, false, [&](const Record& record) { detection_.see_test(record); });
    if (needs.gradients) see_gradients();
  }

  void see_ood(const Dataset& ood) {
    const auto& needs = measures_.needs();
    if (needs_ood_training_) {
      show(ood, Split::train, true, [](const Record&) {});
      show_train_again(ood, true);
    }
    if (!needs.ood && detection_.is_empty()) return;
    show(ood, Split::test, true, [&](const Record& record) { detection_.see_test(record); });
  }

  // For those who need a closer look.
  void see_test_split_again() {
    while (measures_.wants_another_pass()) {
      show(dataset_, Split::test, false, [](const Record&) {});
    }
  }

  Measured results() {
    Measured measured;
    measured.readings = measures_.compute([&](size_t place, const std::string& name) {
      stop_if_asked();
      progress("measure", static_cast<int64_t>(place), name);
    });
    measured.curves = measures_.curves();
    auto detected = detection_.results(settings_.measure.groups);
    measured.scores = std::move(detected.scores);
    append(measured.readings, std::move(detected.readings));
    const auto& names = settings_.measure.names;
    if (std::find(names.begin(), names.end(), "neural_collapse") == names.end()) {
      append(measured.readings, detection_.orthodev());
    }
    for (const auto& note : detection_.notes()) context_.warn(note);
    return measured;
  }

 private:
  uint64_t seed() const { return derive_seed(settings_.context().seed, "measure"); }

  // How many of the training split are shown.
  int64_t train_sample(const Dataset& dataset) const {
    if (!measures_.needs().train_split && detection_.is_empty()) return 0;
    return std::min(settings_.measure.train_samples, dataset.train.size());
  }

  void fit_detectors() {
    int64_t done = 0;
    detection_.fit([&](const std::string& detector) {
      stop_if_asked();
      context_.report_progress({.phase = "fit",
                                .done = done++,
                                .total = static_cast<int64_t>(detection_.size()),
                                .note = detector});
    });
  }

  void see_sample(int64_t count) {
    const auto& needs = measures_.needs();
    extract(model_, dataset_, dataset_,
            {.with_layers = needs.layers,
             .with_attention = needs.attention,
             .indices = shuffled_sample(seed(), count, dataset_.test.size())},
            [&](const Record& record) {
              stop_if_asked();
              measures_.see_sample(record);
            });
  }

  void see_gradients() {
    check(dataset_.train.size() > 0, "dataset '", dataset_.name,
          "' has no training images, which the gradients of the loss are taken on");
    measures_.see_gradients(extract_gradients(
        model_, dataset_,
        {.indices =
             shuffled_sample(seed(), settings_.measure.gradient_samples, dataset_.train.size()),
         .loss = settings_.loss_at(settings_.context().temperature)}));
  }

  void show_train_again(const Dataset& dataset, bool is_ood) {
    for (int64_t pass = 1; measures_.wants_train_again(); ++pass) {
      show(
          dataset, Split::train, is_ood, [](const Record&) {}, pass);
    }
  }

  // Every pass has its own order, which does not follow that of the dataset: some are sorted by
  // class, and who learns from a stream would learn one class after another.
  std::vector<int64_t> train_order(const Dataset& dataset, int64_t pass) const {
    auto sample = shuffled_sample(seed(), settings_.measure.train_samples, dataset.train.size());
    if (pass == 0) return sample;
    std::vector<int64_t> indices;
    indices.reserve(sample.size());
    for (const auto place : epoch_order(seed(), pass, static_cast<int64_t>(sample.size()))) {
      indices.push_back(sample[static_cast<size_t>(place)]);
    }
    return indices;
  }

  template <class Extra>
  void show(const Dataset& dataset, Split split, bool is_ood, const Extra& extra,
            int64_t pass = 0) {
    const auto& needs = measures_.needs();
    const bool for_measures = !is_ood || needs.ood;
    const bool with_layers = split == Split::train ? measures_.needs_train_layers() : needs.layers;
    ExtractOptions options{.split = split,
                           .is_ood = is_ood,
                           .with_layers = with_layers && for_measures,
                           .with_attention = needs.attention && for_measures};
    if (split == Split::train) options.indices = train_order(dataset, pass);
    extract(model_, dataset, dataset_, options, [&](const Record& record) {
      stop_if_asked();
      if (for_measures) measures_.update(record);
      extra(record);
    });
  }

  void stop_if_asked() const {
    if (context_.should_stop()) {
      throw MeasuringStopped("stopped while measuring; no readings were written");
    }
  }

  void progress(const char* phase, int64_t done, const std::string& note) const {
    context_.report_progress({.phase = phase,
                              .done = done,
                              .total = static_cast<int64_t>(measures_.size()),
                              .note = note});
  }

  Model& model_;
  const Dataset& dataset_;
  const RunSettings& settings_;
  const RunContext& context_;
  MeasureSet measures_;
  bool needs_ood_training_ = false;  // whether any of them does
  Detection detection_;
};

}  // namespace

Measured measure_model(Model& model, const Dataset& dataset, const std::vector<Dataset>& ood,
                       const RunSettings& settings, const RunContext& context) {
  const torch::NoGradGuard no_grad;
  Session session(model, dataset, ood, settings, context);
  if (!ood.empty()) session.use_detectors();
  session.count_memory(ood);
  session.see_trained_dataset();
  for (const auto& each : ood) session.see_ood(each);
  session.see_test_split_again();
  return session.results();
}

}  // namespace kelvin
