#include "kelvin/experiment/evaluate/evaluation.h"

#include <torch/utils.h>

#include <iterator>
#include <utility>

namespace kelvin {
namespace {

using Ood = std::optional<size_t>;

void append_readings(Readings& readings, Readings more) {
  readings.insert(readings.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
}

class Driver {
 public:
  Driver(RecordSource& source, MeasureSet& measures, Detection& detection,
         const RunContext& context)
      : source_(source), measures_(measures), detection_(detection), context_(context) {}

  void run() {
    const auto& needs = measures_.needs();
    if (needs.sample > 0) {
      source_.show(
          {.sample = needs.sample, .with_layers = needs.layers, .with_attention = needs.attention},
          [&](const Record& record) { measures_.see_sample(record); });
    }
    if (needs.train_split || !detection_.is_empty()) show_train({});
    if (!detection_.is_empty()) fit_detectors();
    show_test({});
    if (needs.gradients) measures_.see_gradients(source_.gradients());
    for (size_t ood = 0; ood < source_.ood_datasets(); ++ood) {
      if (measures_.needs_ood_training()) show_train(ood);
      if (needs.ood || !detection_.is_empty()) show_test(ood);
    }
    while (measures_.wants_another_pass()) show({}, [](const Record&) {});
  }

 private:
  void show_train(Ood ood) {
    if (!source_.has_train(ood)) return;
    show({.split = Split::train, .ood = ood}, [&](const Record& record) {
      if (!ood && !detection_.is_empty()) detection_.see_train(record);
    });
    for (int64_t i = 1; measures_.wants_train_again(); ++i) {
      show({.split = Split::train, .ood = ood, .repetition = i}, [](const Record&) {});
    }
  }

  void show_test(Ood ood) {
    show({.ood = ood}, [&](const Record& record) { detection_.see_test(record); });
  }

  // To the measures, then to `others`.
  void show(Pass pass, const RecordSource::Consume& others) {
    const auto& needs = measures_.needs();
    const bool for_measures = !pass.ood || needs.ood;
    const bool of_layers =
        pass.split == Split::train ? measures_.needs_train_layers() : needs.layers;
    pass.with_layers = of_layers && for_measures;
    pass.with_attention = needs.attention && for_measures;
    source_.show(pass, [&](const Record& record) {
      if (for_measures) measures_.update(record);
      others(record);
    });
  }

  void fit_detectors() {
    int64_t done = 0;
    detection_.fit([&](const std::string& detector) {
      stop_if_asked(context_);
      context_.report_progress({.phase = "fit",
                                .done = done++,
                                .total = static_cast<int64_t>(detection_.size()),
                                .note = detector});
    });
  }

  RecordSource& source_;
  MeasureSet& measures_;
  Detection& detection_;
  const RunContext& context_;
};

}  // namespace

void stop_if_asked(const RunContext& context) {
  if (context.should_stop()) {
    throw MeasuringStopped("stopped while measuring; no readings were written");
  }
}

void show_all(RecordSource& source, MeasureSet& measures, Detection& detection,
              const RunContext& context) {
  const torch::NoGradGuard no_grad;
  Driver(source, measures, detection, context).run();
}

Measured results_of(const MeasureSet& measures, Detection& detection, const OodGroups& groups,
                    const RunContext& context) {
  const torch::NoGradGuard no_grad;
  Measured measured;
  measured.readings = measures.compute([&](size_t place, const std::string& name) {
    stop_if_asked(context);
    context.report_progress({.phase = "measure",
                             .done = static_cast<int64_t>(place),
                             .total = static_cast<int64_t>(measures.size()),
                             .note = name});
  });
  measured.curves = measures.curves();
  auto detected = detection.results(groups);
  measured.scores = std::move(detected.scores);
  append_readings(measured.readings, std::move(detected.readings));
  // The measure has it, among others.
  if (!measures.has("neural_collapse")) append_readings(measured.readings, detection.orthodev());
  for (const auto& note : detection.notes()) context.warn(note);
  return measured;
}

}  // namespace kelvin
