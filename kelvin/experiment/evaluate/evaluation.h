#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/core/reading.h"
#include "kelvin/experiment/compute_api.h"
#include "kelvin/experiment/evaluate/detection.h"
#include "kelvin/experiment/evaluate/measure_set.h"
#include "kelvin/model/record.h"
#include "kelvin/runs/scores_file.h"

namespace kelvin {

// One pass over samples of one split of one dataset.
struct Pass {
  Split split = Split::test;
  std::optional<size_t> ood = {};  // which of the OOD datasets; none: the one trained on
  int64_t repetition = 0;          // how often the split was shown before
  int64_t sample = 0;              // only so many samples, chosen at random; 0: the whole split
  bool with_layers = false;
  bool with_attention = false;
};

// Where records come from: a network, or somebody's dumps.
class RecordSource {
 public:
  using Consume = std::function<void(const Record&)>;

  virtual ~RecordSource() = default;
  virtual size_t ood_datasets() const { return 0; }
  // Whether there are training samples of that dataset, as in Pass::ood.
  virtual bool has_train(const std::optional<size_t>& ood) const = 0;
  // All records of a pass, batch by batch.
  virtual void show(const Pass& pass, const Consume& consume) = 0;
  // One batch of the training split whose layers have gradients; asked only of who has such.
  virtual Record gradients() { return {}; }
};

// What measures and detectors said.
struct Measured {
  Readings readings;
  NamedTensors curves;
  std::vector<Scores> scores;
};

// Thrown when the context asked to stop before everything was measured.
class MeasuringStopped : public Error {
 public:
  using Error::Error;
};

void stop_if_asked(const RunContext& context);

// The only place that shows records to measures and detectors: a sample, the training split as
// often as a measure wants, the test split, gradients, the same splits of each OOD dataset, and the
// test split again for those who ask for it.  Detectors are fitted in between.  What nobody needs
// is not asked of the source.
void show_all(RecordSource& source, MeasureSet& measures, Detection& detection,
              const RunContext& context);

// After show_all.  Who looks on is warned of detectors that were left out.
Measured results_of(const MeasureSet& measures, Detection& detection, const OodGroups& groups,
                    const RunContext& context);

}  // namespace kelvin
