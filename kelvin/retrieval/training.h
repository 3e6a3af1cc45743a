#pragma once

#include <cstdint>
#include <vector>

#include "kelvin/retrieval/network.h"

namespace kelvin {

// As published, but for the number of steps (100 000 in the paper).
struct RetrievalTraining {
  int64_t steps = 5000;
  int64_t batch_size = 128;
  int64_t least = 5;  // items of a set, mixed within a batch
  int64_t most = 16;
  double learning_rate = 1e-3;  // AdamW; constant
  double weight_decay = 1e-3;   // decoupled, of biases too
  int64_t classes = 10;         // of the sets; as many as the network has
};

// Trains a network that has gradients, step by step.
class RetrievalTrainer {
 public:
  // `seed` is that of the sets.
  RetrievalTrainer(const RetrievalNetwork& network, ScoreMap map, const RetrievalTraining& options,
                   uint64_t seed);

  struct StepValues {
    double loss = 0;      // mean cross-entropy of the batch
    double accuracy = 0;  // of the batch
  };
  // An Error, before the weights are touched, if the loss is not finite.
  StepValues step();
  // The same on sets that somebody else has drawn.
  StepValues step(const RetrievalSets& sets);

  int64_t steps() const { return steps_; }

 private:
  void update();

  RetrievalNetwork network_;  // shares its parameters
  ScoreMap map_;
  RetrievalTraining options_;
  uint64_t seed_;
  int64_t steps_ = 0;
  std::vector<torch::Tensor> means_;         // of the gradients
  std::vector<torch::Tensor> mean_squares_;  // likewise
};

}  // namespace kelvin
