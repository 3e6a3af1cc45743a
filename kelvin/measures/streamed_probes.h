#pragma once

#include <memory>

#include "kelvin/math/logistic_regression.h"
#include "kelvin/math/streamed_regression.h"
#include "kelvin/measures/measure.h"
#include "kelvin/measures/minibatches.h"
#include "kelvin/measures/probes.h"

namespace kelvin {

// Probes on flattened features, which are never all in memory: every batch goes to the probes of
// all layers, in several passes over the training split.
class StreamedProbes : public Probes {
 public:
  explicit StreamedProbes(const ProbeOptions& options);

  void see_train(const Record& record) override;
  void see_test(const Record& record) override;
  bool wants_train_again() override;
  // Always an Error: what two of them learnt cannot be put together.
  void merge(const Probes& other) override;
  NamedTensors state() const override;
  bool saw_both_splits() const override;
  std::vector<ProbeResult> results() const override;

  // Bytes while they are trained, and of what the probes of `samples` samples remember.
  static int64_t memory(const ProbeOptions& options, const Record& example, int64_t samples,
                        const MeasureContext& known = {});

 private:
  struct Layer {
    std::string name;
    std::string tap;
    int64_t width = 0;
    std::unique_ptr<StreamedRegression> training = nullptr;  // until it is over
    LinearClassifier probe = {};                             // then
    Definition solver = Definition::object();
    std::vector<torch::Tensor> hits = {};  // on the test split, batch by batch
  };

  void begin(const Record& record);
  std::vector<torch::Tensor> rows_of(const Record& record) const;
  torch::Tensor held_out_of(const Record& record) const;
  void train(size_t layer, const Minibatch& batch);
  void finish_training();

  ProbeOptions options_;
  Minibatches minibatches_;
  int64_t classes_ = 0;
  int64_t passes_ = 0;                      // that are over
  int64_t train_samples_ = 0;               // in the first pass
  int64_t held_out_ = 0;                    // of them
  std::vector<torch::Tensor> test_labels_;  // batch by batch
  std::vector<Layer> layers_;               // in order of execution
};

}  // namespace kelvin
