#include "kelvin/train/ema.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>

#include "kelvin/model/weights.h"
#include "tests/support/errors.h"

namespace kelvin::ema_test {

std::shared_ptr<Model> one_number(double value) {
  Settings settings("model", {{"depth", 1}, {"bias", false}});
  auto model =
      models().find("mlp").build({.channels = 1, .height = 1, .width = 1, .classes = 1}, settings);
  torch::NoGradGuard no_grad;
  model->parameters().front().fill_(value);
  return model;
}

double value_of(const Model& model) { return model.parameters().front().item<double>(); }

void set(Model& model, double value) {
  torch::NoGradGuard no_grad;
  model.parameters().front().fill_(value);
}

TEST(WeightEma, ForgetsAtItsPaceButFasterAtTheStart) {
  const auto model = one_number(1);
  WeightEma average(*model, 0.5);
  double expected = 1;
  for (int step = 1; step <= 30; ++step) {
    set(*model, step);
    average.update();
    const double decay = std::min(0.5, (1.0 + step) / (10.0 + step));
    expected = decay * expected + (1 - decay) * step;
    EXPECT_NEAR(average.tensors().at("layers.0.weight").item<double>(), expected, 1e-5);
  }
}

TEST(WeightEma, ChangesPlacesWithTheWeightsAndBack) {
  const auto model = one_number(1);
  WeightEma average(*model, 0.9);
  set(*model, 3);
  average.exchange();
  EXPECT_EQ(value_of(*model), 1);
  average.exchange();
  EXPECT_EQ(value_of(*model), 3);
  EXPECT_EQ(average.tensors().at("layers.0.weight").item<double>(), 1);
}

TEST(WeightEma, GoesOnFromWhatItWas) {
  const auto model = one_number(1);
  WeightEma one(*model, 0.99);
  set(*model, 5);
  one.update();
  NamedTensors saved;
  for (const auto& [name, tensor] : one.tensors()) saved[name] = tensor.clone();
  WeightEma other(*model, 0.99);
  other.restore(saved, one.steps());
  set(*model, -2);
  one.update();
  other.update();
  EXPECT_EQ(other.tensors().at("layers.0.weight").item<double>(),
            one.tensors().at("layers.0.weight").item<double>());
}

TEST(WeightEma, CopiesCountsOfBatches) {
  Settings settings("model", {{"width", 0.5}});
  const auto model = models().find("resnet20").build({}, settings);
  WeightEma average(*model, 0.9);
  torch::NoGradGuard no_grad;
  weights_of(*model).at("bn1.num_batches_tracked").fill_(7);
  average.update();
  EXPECT_EQ(average.tensors().at("bn1.num_batches_tracked").item<int64_t>(), 7);
}

TEST(WeightEma, NeedsAPaceBelowOne) {
  const auto model = one_number(1);
  EXPECT_EQ(error_of([&] { WeightEma(*model, 1); }),
            "weight average: decay must be in (0, 1), got 1");
}

}  // namespace kelvin::ema_test
