#include "kelvin/measures/effective_depth.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/errors.h"

namespace kelvin {
namespace {

TEST(EffectiveDepth, IsTheFirstLayerThatReachesTheThresholdOverTheirNumber) {
  const std::vector<double> accuracies = {0.2, 0.5, 0.79, 0.8, 0.8};
  EXPECT_DOUBLE_EQ(effective_depth(accuracies, 5, 0.99), 4. / 5);
  EXPECT_DOUBLE_EQ(effective_depth(accuracies, 5, 0.95), 3. / 5);
  EXPECT_DOUBLE_EQ(effective_depth(accuracies, 5, 0.25), 1. / 5);
}

TEST(EffectiveDepth, CountsALayerThatReachesTheThresholdExactly) {
  EXPECT_DOUBLE_EQ(effective_depth({0.25, 0.5, 1}, 3, 0.5), 2. / 3);
  EXPECT_DOUBLE_EQ(effective_depth({0.25, 1, 1}, 3, 1), 2. / 3);
}

TEST(EffectiveDepth, LooksAtLayersUpToTheLastOnly) {
  const std::vector<double> accuracies = {0.2, 0.4, 0.4, 0.9};
  EXPECT_DOUBLE_EQ(effective_depth(accuracies, 4, 0.99), 1);
  EXPECT_DOUBLE_EQ(effective_depth(accuracies, 3, 0.99), 2. / 3);
  EXPECT_DOUBLE_EQ(effective_depth(accuracies, 1, 0.99), 1);
}

TEST(EffectiveDepth, IsOneOverTheLayersIfAllAreEqual) {
  EXPECT_DOUBLE_EQ(effective_depth({0.7, 0.7, 0.7, 0.7}, 4, 1), 0.25);
  EXPECT_DOUBLE_EQ(effective_depth({0, 0}, 2, 0.99), 0.5);
}

TEST(EffectiveDepth, FindsALayerBetterThanTheLast) {
  EXPECT_DOUBLE_EQ(effective_depth({0.3, 0.9, 0.6, 0.6}, 4, 0.99), 2. / 4);
}

TEST(EffectiveDepth, RejectsALastLayerThatIsNotThere) {
  EXPECT_EQ(error_of([] {
              effective_depth({0.1, 0.2}, 3, 0.99);
            }),
            "effective_depth: last must be in [1, 2], got 3");
  EXPECT_EQ(error_of([] {
              effective_depth({0.1, 0.2}, 0, 0.99);
            }),
            "effective_depth: last must be in [1, 2], got 0");
}

TEST(GeneralisationDrop, IsWhatTheLastLayerLosesOfTheBest) {
  EXPECT_DOUBLE_EQ(generalisation_drop({0.4, 0.8, 0.6}), 0.25);
  EXPECT_DOUBLE_EQ(generalisation_drop({0.5, 0}), 1);
}

TEST(GeneralisationDrop, IsZeroIfTheLastLayerIsTheBest) {
  EXPECT_EQ(generalisation_drop({0.1, 0.2, 0.3}), 0);
  EXPECT_EQ(generalisation_drop({0.3}), 0);
}

TEST(GeneralisationDrop, RejectsNoLayersAndNoRightAnswers) {
  EXPECT_EQ(error_of([] { generalisation_drop({}); }),
            "generalisation_drop: needs at least one layer");
  EXPECT_EQ(error_of([] {
              generalisation_drop({0, 0});
            }),
            "generalisation_drop: is undefined when no layer gets a sample right");
}

}  // namespace
}  // namespace kelvin
