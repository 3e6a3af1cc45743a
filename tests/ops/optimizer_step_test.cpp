#include "kelvin/ops/optimizer_step.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace kelvin::optimizer_step_test {

// Two long ones, so that several threads have work and share a tensor.
constexpr int64_t kLengths[] = {1, 0, 7, 50001, 33, 16, 40000};

template <class Scalar>
using Numbers = std::vector<Scalar>;

template <class Scalar>
Numbers<Scalar> waves(int64_t length, double speed) {
  Numbers<Scalar> numbers(length);
  for (int64_t i = 0; i < length; ++i) {
    numbers[i] = static_cast<Scalar>(std::sin(speed * static_cast<double>(i + 1)));
  }
  return numbers;
}

template <class Scalar>
struct Owned {
  Numbers<Scalar> parameter;
  Numbers<Scalar> gradient;
  Numbers<Scalar> mean;
  Numbers<Scalar> mean_square;
  SteppedTensor<Scalar> how = {};

  // All that a step changes.
  std::vector<Numbers<Scalar>> results() const { return {parameter, mean, mean_square}; }
};

// Tensors differ in rate, decay and number of steps.
template <class Scalar>
std::vector<Owned<Scalar>> some_tensors() {
  std::vector<Owned<Scalar>> all;
  for (const int64_t length : kLengths) {
    const auto place = static_cast<double>(all.size());
    Owned<Scalar> one{.parameter = waves<Scalar>(length, 0.7 + place),
                      .gradient = waves<Scalar>(length, 0.3 + place),
                      .mean = waves<Scalar>(length, 0.11),
                      .mean_square = waves<Scalar>(length, 0.13)};
    for (auto& square : one.mean_square) square = std::abs(square);
    one.how.steps = 1 + static_cast<int64_t>(all.size());
    one.how.learning_rate = 0.01 * (1 + place);
    one.how.decay = all.size() % 2 == 0 ? 0.1 : 0;
    one.how.shrink = all.size() % 3 == 0 ? 0.99 : 1;
    all.push_back(std::move(one));
  }
  return all;
}

template <class Scalar>
SteppedTensors<Scalar> pointers(std::vector<Owned<Scalar>>& all, bool has_momentum = true) {
  SteppedTensors<Scalar> tensors;
  for (auto& one : all) {
    auto tensor = one.how;
    tensor.parameter = one.parameter.data();
    tensor.gradient = one.gradient.data();
    tensor.mean = has_momentum ? one.mean.data() : nullptr;
    tensor.mean_square = one.mean_square.data();
    tensor.length = static_cast<int64_t>(one.parameter.size());
    tensors.push_back(tensor);
  }
  return tensors;
}

// The formulas, one number after the other.

template <class Scalar>
void sgd_by_hand(Owned<Scalar>& one, const SgdRule& rule, bool has_momentum) {
  const auto as_scalar = [](double number) { return static_cast<Scalar>(number); };
  for (size_t i = 0; i < one.parameter.size(); ++i) {
    const Scalar weight = one.parameter[i] * as_scalar(one.how.shrink);
    Scalar direction = one.gradient[i] * as_scalar(rule.gradient_scale);
    if (one.how.decay > 0) direction = direction + as_scalar(one.how.decay) * weight;
    if (has_momentum) {
      one.mean[i] = as_scalar(rule.momentum) * one.mean[i] + direction;
      direction = rule.nesterov ? direction + as_scalar(rule.momentum) * one.mean[i] : one.mean[i];
    }
    one.parameter[i] = weight - as_scalar(one.how.learning_rate) * direction;
  }
}

template <class Scalar>
void adam_by_hand(Owned<Scalar>& one, const AdamRule& rule) {
  const auto as_scalar = [](double number) { return static_cast<Scalar>(number); };
  const auto steps = static_cast<double>(one.how.steps);
  const auto rate = as_scalar(one.how.learning_rate / (1 - std::pow(rule.beta1, steps)));
  const auto bias = as_scalar(std::sqrt(1 - std::pow(rule.beta2, steps)));
  for (size_t i = 0; i < one.parameter.size(); ++i) {
    const Scalar weight = one.parameter[i] * as_scalar(one.how.shrink);
    Scalar slope = one.gradient[i] * as_scalar(rule.gradient_scale);
    if (one.how.decay > 0) slope = slope + as_scalar(one.how.decay) * weight;
    one.mean[i] = as_scalar(rule.beta1) * one.mean[i] + as_scalar(1 - rule.beta1) * slope;
    one.mean_square[i] =
        as_scalar(rule.beta2) * one.mean_square[i] + as_scalar(1 - rule.beta2) * slope * slope;
    const Scalar deviation = std::sqrt(one.mean_square[i]) / bias + as_scalar(rule.epsilon);
    one.parameter[i] = weight - rate * one.mean[i] / deviation;
  }
}

template <class Scalar>
void expect_same_bits(const std::vector<Owned<Scalar>>& actual,
                      const std::vector<Owned<Scalar>>& expected) {
  for (size_t tensor = 0; tensor < expected.size(); ++tensor) {
    const auto ours = actual[tensor].results();
    const auto theirs = expected[tensor].results();
    for (size_t what = 0; what < theirs.size(); ++what) {
      ASSERT_EQ(ours[what].size(), theirs[what].size());
      const auto bytes = ours[what].size() * sizeof(Scalar);
      EXPECT_TRUE(bytes == 0 || std::memcmp(ours[what].data(), theirs[what].data(), bytes) == 0)
          << "tensor " << tensor << ", number " << what;
    }
  }
}

// While it lives, LibTorch has so many threads.
class Threads {
 public:
  explicit Threads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

template <class Scalar>
class OptimizerKernels : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(OptimizerKernels, Scalars);

TYPED_TEST(OptimizerKernels, StepAsTheFormulaOfSgdForAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3}) {
    for (const bool has_momentum : {false, true}) {
      for (const bool nesterov : {false, true}) {
        const Threads scope(threads);
        const SgdRule rule{.momentum = 0.9, .nesterov = nesterov, .gradient_scale = 0.7};
        auto ours = some_tensors<TypeParam>();
        sgd_step(pointers(ours, has_momentum), rule);
        auto theirs = some_tensors<TypeParam>();
        for (auto& one : theirs) sgd_by_hand(one, rule, has_momentum);
        expect_same_bits(ours, theirs);
      }
    }
  }
}

TYPED_TEST(OptimizerKernels, StepAsTheFormulaOfAdamForAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3}) {
    const Threads scope(threads);
    const AdamRule rule{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .gradient_scale = 0.7};
    auto ours = some_tensors<TypeParam>();
    adam_step(pointers(ours), rule);
    auto theirs = some_tensors<TypeParam>();
    for (auto& one : theirs) adam_by_hand(one, rule);
    expect_same_bits(ours, theirs);
  }
}

TYPED_TEST(OptimizerKernels, FirstStepOfAdamIsTheRateAgainstTheSlope) {
  TypeParam parameters[] = {1, 1, 1};
  const TypeParam gradients[] = {3, -1000, 1};
  TypeParam means[] = {0, 0, 0};
  TypeParam squares[] = {0, 0, 0};
  adam_step({{.parameter = parameters,
              .gradient = gradients,
              .mean = means,
              .mean_square = squares,
              .length = 3,
              .learning_rate = 0.25}},
            {});
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(parameters[i], gradients[i] > 0 ? 0.75 : 1.25, 1e-6) << i;
  }
}

TYPED_TEST(OptimizerKernels, LeaveInfiniteWeightsInfiniteUnlessTheyDecay) {
  constexpr auto kInfinity = std::numeric_limits<TypeParam>::infinity();
  for (const double decay : {0.0, 0.5}) {
    TypeParam parameters[] = {kInfinity, 1};
    const TypeParam gradients[] = {2, std::numeric_limits<TypeParam>::quiet_NaN()};
    sgd_step({{.parameter = parameters,
               .gradient = gradients,
               .length = 2,
               .learning_rate = 1,
               .decay = decay}},
             {});
    EXPECT_EQ(std::isnan(parameters[0]), decay > 0);
    EXPECT_TRUE(std::isnan(parameters[1]));
  }
}

TYPED_TEST(OptimizerKernels, SumSquaresInAFixedOrder) {
  auto all = some_tensors<TypeParam>();
  double expected = 0;
  for (const auto& one : all) {
    for (const double value : one.gradient) expected += value * value;
  }
  const auto sum = [&](int threads) {
    const Threads scope(threads);
    return squared_gradients(pointers(all));
  };
  EXPECT_NEAR(sum(1), expected, 1e-12 * expected);
  EXPECT_EQ(sum(2), sum(1));
  EXPECT_EQ(sum(3), sum(1));
}

TYPED_TEST(OptimizerKernels, SumSquaresThatSinglePrecisionCannotHold) {
  Numbers<TypeParam> gradients(20000, static_cast<TypeParam>(1e30));
  const auto length = static_cast<int64_t>(gradients.size());
  const SteppedTensors<TypeParam> tensors = {{.gradient = gradients.data(), .length = length}};
  EXPECT_NEAR(squared_gradients(tensors) / 2e64, 1, 1e-6);
  gradients[12345] = std::numeric_limits<TypeParam>::infinity();
  EXPECT_EQ(squared_gradients(tensors), std::numeric_limits<double>::infinity());
  gradients[19999] = std::numeric_limits<TypeParam>::quiet_NaN();
  EXPECT_TRUE(std::isnan(squared_gradients(tensors)));
}

TYPED_TEST(OptimizerKernels, DoNothingWithNothing) {
  const SteppedTensors<TypeParam> none;
  sgd_step(none, {});
  adam_step(none, {});
  average_step(std::vector<AveragedTensor<TypeParam>>{}, 0.5);
  EXPECT_EQ(squared_gradients(none), 0);
}

TYPED_TEST(OptimizerKernels, MoveAveragesByAShareOfTheWay) {
  for (const double share : {0.0, 0.1, 0.75, 1.0}) {
    std::vector<Numbers<TypeParam>> averages;
    std::vector<Numbers<TypeParam>> newest;
    std::vector<AveragedTensor<TypeParam>> tensors;
    for (const int64_t length : kLengths) {
      averages.push_back(waves<TypeParam>(length, 0.7));
      newest.push_back(waves<TypeParam>(length, 0.3));
    }
    const auto before = averages;
    for (size_t i = 0; i < averages.size(); ++i) {
      tensors.push_back({.average = averages[i].data(),
                         .newest = newest[i].data(),
                         .length = static_cast<int64_t>(averages[i].size())});
    }
    average_step(tensors, share);
    EXPECT_TRUE(share != 0 || averages == before);
    EXPECT_TRUE(share != 1 || averages == newest);
    const double tolerance = 4 * static_cast<double>(std::numeric_limits<TypeParam>::epsilon());
    for (size_t tensor = 0; tensor < averages.size(); ++tensor) {
      double worst = 0;
      for (size_t i = 0; i < averages[tensor].size(); ++i) {
        const double old = before[tensor][i];
        const double expected = old + share * (static_cast<double>(newest[tensor][i]) - old);
        worst = std::max(worst, std::abs(averages[tensor][i] - expected));
      }
      EXPECT_LE(worst, tolerance) << share << ", tensor " << tensor;
    }
  }
}

}  // namespace kelvin::optimizer_step_test
