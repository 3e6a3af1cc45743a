#include "kelvin/retrieval/training.h"

#include <cmath>
#include <string>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/ops/cross_entropy.h"
#include "kelvin/ops/optimizer_step.h"

namespace kelvin {

RetrievalTrainer::RetrievalTrainer(const RetrievalNetwork& network, ScoreMap map,
                                   const RetrievalTraining& options, uint64_t seed)
    : network_(network), map_(std::move(map)), options_(options), seed_(seed) {
  check(options.batch_size >= 1, "retrieval training: the batch size must be at least 1, got ",
        options.batch_size);
  check(std::isfinite(options.learning_rate) && options.learning_rate > 0,
        "retrieval training: the learning rate must be a finite number above 0, got ",
        options.learning_rate);
  check(std::isfinite(options.weight_decay) && options.weight_decay >= 0,
        "retrieval training: the weight decay must be a finite number, not below 0, got ",
        options.weight_decay);
  check(options.classes == network.shape().classes, "retrieval training: the network has ",
        network.shape().classes, " classes, the sets ", options.classes);
  for (const auto& [name, parameter] : network_.parameters()) {
    means_.push_back(torch::zeros_like(parameter));
    mean_squares_.push_back(torch::zeros_like(parameter));
  }
}

RetrievalTrainer::StepValues RetrievalTrainer::step() {
  return step(draw_sets({.count = options_.batch_size,
                         .least = options_.least,
                         .most = options_.most,
                         .classes = options_.classes},
                        derive_seed(seed_, std::to_string(steps_))));
}

RetrievalTrainer::StepValues RetrievalTrainer::step(const RetrievalSets& sets) {
  const auto answer = network_.answer(sets, map_);
  const auto values = tempered_cross_entropy(answer.logits, sets.labels, torch::ones({}));
  const auto loss = values.loss.item<double>();
  check(std::isfinite(loss), "retrieval training: the loss is not finite at step ", steps_ + 1,
        "; a lower learning rate may help");
  for (const auto& [name, parameter] : network_.parameters()) parameter.mutable_grad().reset();
  values.loss.backward();
  ++steps_;
  update();
  return {
      .loss = loss,
      .accuracy = (values.predictions == sets.labels).to(torch::kFloat64).mean().item<double>()};
}

void RetrievalTrainer::update() {
  const torch::NoGradGuard no_grad;
  SteppedTensors<float> tensors;
  std::vector<torch::Tensor> gradients;  // held until the step is done
  const auto& parameters = network_.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& parameter = parameters[i].second;
    if (!parameter.grad().defined()) continue;
    gradients.push_back(parameter.grad().contiguous());
    tensors.push_back({.parameter = parameter.data_ptr<float>(),
                       .gradient = gradients.back().data_ptr<float>(),
                       .mean = means_[i].data_ptr<float>(),
                       .mean_square = mean_squares_[i].data_ptr<float>(),
                       .length = parameter.numel(),
                       .steps = steps_,
                       .learning_rate = options_.learning_rate,
                       .shrink = 1 - options_.learning_rate * options_.weight_decay});
  }
  adam_step(tensors, {});
}

}  // namespace kelvin
