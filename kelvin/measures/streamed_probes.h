#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kelvin/measures/probes.h"
#include "kelvin/numerics/logistic_regression.h"
#include "kelvin/numerics/streamed_regression.h"

namespace kelvin {

// Cuts a stream of batches of all layers anew.
class Minibatches {
 public:
  // Of one layer: its place, and its minibatch.  Different layers are handed on at the same time.
  using Consume = std::function<void(size_t, const Minibatch&)>;

  // Of `samples` samples each but for the last, so that nothing depends on how the stream was cut.
  explicit Minibatches(int64_t samples) : size_(samples) {}

  // `rows` has the features of each layer; labels and held_out are those of all of them.
  void add(const std::vector<torch::Tensor>& rows, const torch::Tensor& labels,
           const torch::Tensor& held_out, const Consume& consume);
  // What is left.
  void finish(const Consume& consume);

 private:
  void hand_on(int64_t samples, const Consume& consume);

  int64_t size_;
  int64_t kept_ = 0;
  std::vector<std::vector<torch::Tensor>> rows_;  // by layer, batch by batch
  std::vector<torch::Tensor> labels_;
  std::vector<torch::Tensor> held_out_;
};

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
  // While they are trained, and of what they remember of each sample.
  int64_t memory(const Record& example, int64_t samples,
                 const MeasureContext& known) const override;

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
