#include "kelvin/data/subset.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <set>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::subset_test {

using Indices = std::vector<int64_t>;
using Names = std::vector<std::string>;

TEST(BalancedSample, IsAscendingAndDistinctAndAsEqualAsPossible) {
  const auto labels = torch::arange(1000, torch::kInt64).remainder(10);
  const auto sample = balanced_sample(labels, 10, 57, 4);
  EXPECT_EQ(sample.size(), 57U);
  EXPECT_EQ(std::set<int64_t>(sample.begin(), sample.end()).size(), 57U);
  EXPECT_TRUE(std::is_sorted(sample.begin(), sample.end()));
  Indices counts(10);
  for (const auto index : sample) ++counts[static_cast<size_t>(index % 10)];
  EXPECT_EQ(counts, (Indices{6, 6, 6, 6, 6, 6, 6, 5, 5, 5}));
}

TEST(BalancedSample, IsEverythingIfMoreIsAskedFor) {
  EXPECT_EQ(balanced_sample(labels_of({0, 0, 1}), 2, 3, 0), (Indices{0, 1, 2}));
  EXPECT_EQ(balanced_sample(labels_of({0, 0, 1}), 2, 99, 0), (Indices{0, 1, 2}));
}

TEST(BalancedSample, GoesOnWithoutClassesThatAreUsedUpOrEmpty) {
  const auto labels = labels_of({0, 0, 0, 0, 0, 2});
  const auto sample = balanced_sample(labels, 3, 4, 1);
  EXPECT_EQ(sample.size(), 4U);
  EXPECT_EQ(sample.back(), 5) << "the only one of its class";
}

TEST(ChosenClasses, AreTheFirstOnesOrTheNamedOnes) {
  const Names names = {"ant", "bee", "cat"};
  EXPECT_EQ(chosen_classes({"2"}, names), (Indices{0, 1}));
  EXPECT_EQ(chosen_classes({"cat", "ant"}, names), (Indices{2, 0}));
}

TEST(ChosenClasses, TakeOneNumberAsACountEvenWhereClassesAreNamedByNumbers) {
  EXPECT_EQ(chosen_classes({"2"}, {"0", "1", "2"}), (Indices{0, 1}));
  EXPECT_EQ(chosen_classes({"2", "1"}, {"0", "1", "2"}), (Indices{2, 1}));
}

TEST(ChosenClasses, RejectWhatIsNotThereOrTooFew) {
  const Names names = {"ant", "bee", "cat"};
  EXPECT_EQ(error_of([&] {
              chosen_classes({"ant", "bees"}, names);
            }),
            "data.classes: no class named 'bees'; did you mean 'bee'?");
  EXPECT_EQ(error_of([&] {
              chosen_classes({"ant", "ant"}, names);
            }),
            "data.classes: 'ant' is named twice");
  EXPECT_EQ(error_of([&] { chosen_classes({"ant"}, names); }),
            "data.classes: needs a number of classes or the names of two or more, got 'ant'");
  EXPECT_EQ(error_of([&] { chosen_classes({"4"}, names); }),
            "data.classes: must be from 2 to 3, got 4");
  EXPECT_EQ(error_of([&] { chosen_classes({"1"}, names); }),
            "data.classes: must be from 2 to 3, got 1");
}

TEST(Select, TakesFilesWithTheirLabels) {
  LabelledFiles files{
      .paths = {"a.png", "b.png", "c.png"}, .labels = {0, 1, 1}, .class_names = {"x", "y"}};
  Images images{.pixels = {}, .labels = labels_of({0, 1, 1})};
  images.files = std::make_shared<ImageFiles>(files, ImageFileOptions{.size = 8});
  const auto chosen = select(images, {2, 0});
  EXPECT_EQ(chosen.files->files().paths.front(), "c.png");
  EXPECT_EQ(chosen.files->files().labels, (Indices{1, 0}));
  EXPECT_TRUE(chosen.labels.equal(labels_of({1, 0})));
  EXPECT_EQ(chosen.files->side(), 8);
  EXPECT_EQ(chosen.size(), 2);
}

TEST(OfClasses, LeavesAnEmptySplitEmpty) { EXPECT_EQ(of_classes({}, {0, 1}).size(), 0); }

}  // namespace kelvin::subset_test
