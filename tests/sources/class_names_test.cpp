#include "kelvin/sources/class_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/errors.h"

namespace kelvin {
namespace {

bool is_wordnet_id(const std::string& name) {
  return name.size() == 9 && name.front() == 'n' &&
         std::all_of(name.begin() + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

TEST(ClassNames, HaveAsManyNamesAsTheDatasetsHaveClasses) {
  const std::map<std::string, size_t> classes = {
      {"cifar10", 10},       {"cifar100", 100},    {"cifar100-coarse", 20}, {"digits", 10},
      {"fashion-mnist", 10}, {"imagenet100", 100}, {"imagenet1k", 1000},    {"kmnist", 10}};
  ASSERT_EQ(class_lists().size(), classes.size());
  for (const auto& [list, count] : classes) EXPECT_EQ(class_names(list).size(), count) << list;
}

TEST(ClassNames, AreDistinctAndNeverEmpty) {
  for (const auto& [list, text] : class_lists()) {
    const auto names = class_names(list);
    const std::set<std::string> distinct(names.begin(), names.end());
    EXPECT_EQ(distinct.size(), names.size()) << list;
    EXPECT_FALSE(distinct.contains("")) << list;
    EXPECT_EQ(text.find('\r'), std::string::npos) << list;
  }
}

TEST(ClassNames, StandInTheOrderOfTheLabels) {
  EXPECT_EQ(class_names("digits").at(7), "7");
  EXPECT_EQ(class_names("cifar10").at(0), "airplane");
  EXPECT_EQ(class_names("cifar10").at(9), "truck");
  EXPECT_EQ(class_names("cifar100").at(19), "cattle");
  EXPECT_EQ(class_names("cifar100-coarse").at(11), "large_omnivores_and_herbivores");
  EXPECT_EQ(class_names("fashion-mnist").at(9), "Ankle boot");
  EXPECT_EQ(class_names("kmnist").at(3), "tsu");
  EXPECT_EQ(class_names("imagenet1k").at(0), "n01440764");
  EXPECT_EQ(class_names("imagenet1k").at(999), "n15075141");
}

// Readers of image folders label them in sorted order: so do all who publish models of them.
TEST(ClassNames, OfImageNetAreSortedWordnetIds) {
  for (const std::string list : {"imagenet100", "imagenet1k"}) {
    const auto names = class_names(list);
    EXPECT_TRUE(std::is_sorted(names.begin(), names.end())) << list;
    EXPECT_TRUE(std::all_of(names.begin(), names.end(), is_wordnet_id)) << list;
  }
}

TEST(ClassNames, OfImageNet100AreAmongTheThousand) {
  const auto thousand = class_names("imagenet1k");
  for (const auto& name : class_names("imagenet100")) {
    EXPECT_TRUE(std::binary_search(thousand.begin(), thousand.end(), name)) << name;
  }
}

// The first and the last line of the published list, and one of its middle.
TEST(ClassNames, OfImageNet100AreThoseOfTianAndOthers) {
  const auto hundred = class_names("imagenet100");
  for (const std::string name : {"n02869837", "n02259212", "n02090622"}) {
    EXPECT_TRUE(std::binary_search(hundred.begin(), hundred.end(), name)) << name;
  }
  EXPECT_FALSE(std::binary_search(hundred.begin(), hundred.end(), std::string("n01440764")));
}

TEST(ClassNames, RejectAListThatIsNotThere) {
  EXPECT_EQ(error_of([] { class_names("cifar11"); }), "no list of classes named 'cifar11'");
}

}  // namespace
}  // namespace kelvin
