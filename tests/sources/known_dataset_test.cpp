#include "kelvin/sources/known_dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "tests/support/errors.h"

namespace kelvin::known_dataset_test {

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

int64_t sum(const std::vector<int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

TEST(KnownDatasets, AreListedWithTheSmallOnesFirst) {
  std::vector<std::string> names;
  for (const auto& dataset : known_datasets()) names.push_back(dataset.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"cifar10", "cifar100", "cifar100-coarse", "svhn", "mnist",
                                      "fashion-mnist", "kmnist", "imagenet100", "imagenet1k"}));
}

TEST(KnownDatasets, SayWhatTheyAreInOneLine) {
  for (const auto& dataset : known_datasets()) {
    for (const auto& text : {dataset.summary, dataset.citation, dataset.licence}) {
      EXPECT_FALSE(text.empty()) << dataset.name;
      EXPECT_EQ(text.find('\n'), std::string::npos) << dataset.name;
    }
  }
}

TEST(KnownDatasets, HaveTheirPublishedNumbersOfImages) {
  EXPECT_EQ(sum(known_dataset("cifar10").train_counts), 50000);
  EXPECT_EQ(sum(known_dataset("cifar100").train_counts), 50000);
  EXPECT_EQ(sum(known_dataset("cifar100-coarse").test_counts), 10000);
  EXPECT_EQ(sum(known_dataset("svhn").train_counts), 73257);
  EXPECT_EQ(sum(known_dataset("svhn").test_counts), 26032);
  for (const std::string name : {"mnist", "fashion-mnist", "kmnist"}) {
    EXPECT_EQ(sum(known_dataset(name).train_counts), 60000) << name;
    EXPECT_EQ(sum(known_dataset(name).test_counts), 10000) << name;
  }
}

TEST(KnownDatasets, CountEveryClassOrNone) {
  for (const auto& dataset : known_datasets()) {
    const auto classes = static_cast<size_t>(dataset.classes());
    EXPECT_GE(classes, 10U) << dataset.name;
    const bool is_counted = !dataset.name.starts_with("imagenet");
    EXPECT_EQ(dataset.train_counts.size(), is_counted ? classes : 0U) << dataset.name;
    EXPECT_EQ(dataset.test_counts.size(), is_counted ? classes : 0U) << dataset.name;
  }
}

TEST(KnownDatasets, HaveStatisticsThatPixelsCanHave) {
  for (const auto& dataset : known_datasets()) {
    for (size_t channel = 0; channel < 3; ++channel) {
      const auto mean = dataset.mean.at(channel);
      const auto std_dev = dataset.std_dev.at(channel);
      EXPECT_GT(mean, 0.1) << dataset.name;
      EXPECT_GT(std_dev, 0.1) << dataset.name;
      // No values in [0, 1] spread further around their mean.
      EXPECT_LE(std_dev * std_dev, mean * (1 - mean)) << dataset.name;
      if (dataset.channels == 1) {
        EXPECT_EQ(mean, dataset.mean.at(0)) << dataset.name;
        EXPECT_EQ(std_dev, dataset.std_dev.at(0)) << dataset.name;
      }
    }
  }
}

TEST(KnownDatasets, SayHowToGetWhatCannotBeFetched) {
  for (const auto& dataset : known_datasets()) {
    EXPECT_EQ(dataset.routes.empty(), !dataset.how_to_get.empty()) << dataset.name;
  }
}

TEST(KnownDatasets, NameTheNearestOneForAnUnknownName) {
  EXPECT_EQ(error_of([] { known_dataset("cifar-10"); }),
            "no known dataset named 'cifar-10'; did you mean 'cifar10'? There are: cifar10, "
            "cifar100, cifar100-coarse, svhn, mnist, fashion-mnist, kmnist, imagenet100, "
            "imagenet1k");
  EXPECT_TRUE(error_of([] {
                known_dataset("places");
              }).starts_with("no known dataset named 'places'. There are: cifar10,"));
}

}  // namespace kelvin::known_dataset_test
