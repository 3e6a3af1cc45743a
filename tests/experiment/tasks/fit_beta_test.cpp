#include "kelvin/experiment/tasks/fit_beta.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "kelvin/experiment/retrieval/retrieval_file.h"
#include "kelvin/experiment/tasks/train_retrieval.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin::fit_beta_test {

class FittedNetworks : public testing::Test {
 protected:
  void train(const std::string& attention) {
    TrainRetrievalRequest request{.seeds = {0, 1}, .output = folder_.path()};
    request.config.set("retrieval.width", 8);
    request.config.set("retrieval.steps", 3);
    request.config.set("retrieval.attention", attention);
    train_retrieval(request, {});
  }

  TemporaryFolder folder_;
};

double value_of(const Readings& readings, const std::string& name, const std::string& polynomial) {
  for (const auto& reading : readings) {
    if (reading.name == name && reading.definition.value("polynomial", "") == polynomial) {
      return reading.value;
    }
  }
  ADD_FAILURE() << name << " of " << polynomial;
  return 0;
}

TEST_F(FittedNetworks, WriteCoefficientsThatCanBeRead) {
  train("softmax");
  const std::filesystem::path file = folder_ / "beta.toml";
  const auto readings =
      fit_beta({.networks = {folder_.path()}, .sizes = {4, 16}, .sets = 30, .output = file}, {});
  const auto coefficients = load_beta(file);
  size_t found = 0;
  for (const auto& reading : readings) {
    if (reading.name != "beta_coefficient") continue;
    EXPECT_NEAR(reading.value, coefficients.at(4 - static_cast<size_t>(*reading.index)),
                1e-9 * std::abs(reading.value) + 1e-12);
    ++found;
  }
  EXPECT_EQ(found, 5U);
}

TEST_F(FittedNetworks, SayWhereThePublishedPolynomialSwitchesItselfOff) {
  train("softmax");
  const auto readings = fit_beta({.networks = {folder_.path()}, .sizes = {8}, .sets = 10}, {});
  EXPECT_NEAR(value_of(readings, "beta_off_entropy", "published"), 5.9445, 2e-4);
  EXPECT_NEAR(value_of(readings, "beta_peak_entropy", "published"), 4.4125, 2e-4);
  EXPECT_NEAR(value_of(readings, "beta_peak", "published"), 2.42139, 1e-5);
}

TEST_F(FittedNetworks, HaveToBeTrainedWithSoftmax) {
  train("top_k");
  EXPECT_NE(error_of([&] {
              fit_beta({.networks = {folder_.path()}}, {});
            }).find("an adaptive temperature is fitted to networks trained with softmax"),
            std::string::npos);
  EXPECT_EQ(error_of([&] { fit_beta({.networks = {folder_.path()}, .sets = 0}, {}); }),
            "fit of beta: needs at least one size and one set of each");
}

}  // namespace kelvin::fit_beta_test
