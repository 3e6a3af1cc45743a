#pragma once

#include <map>

#include "kelvin/measures/probes.h"

namespace kelvin {

// Probes on features that are pooled and kept, each solved to convergence.
class CachedProbes : public Probes {
 public:
  explicit CachedProbes(const ProbeOptions& options) : options_(options) {}

  void see_train(const Record& record) override { add(record, train_); }
  void see_test(const Record& record) override { add(record, test_); }
  void merge(const Probes& other) override;
  NamedTensors state() const override;
  bool saw_both_splits() const override;
  std::vector<ProbeResult> results() const override;
  // Of what is kept, and of solving one layer.
  int64_t memory(const Record& example, int64_t samples,
                 const MeasureContext& known) const override;

 private:
  using Batches = std::vector<torch::Tensor>;
  struct Kept {
    std::map<std::string, Batches> features;  // by layer
    Batches labels;
  };
  struct Layer {
    std::string name;
    std::string tap;
  };

  void add(const Record& record, Kept& kept);
  static void append(const Kept& theirs, Kept& ours);
  ProbeResult probe(const Layer& layer, const torch::Tensor& train_labels,
                    const torch::Tensor& test_labels) const;

  ProbeOptions options_;
  int64_t classes_ = 0;
  std::vector<Layer> layers_;  // in order of execution
  Kept train_;
  Kept test_;
};

}  // namespace kelvin
