#include "kelvin/sources/known_dataset.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "tests/support/errors.h"

namespace kelvin {
namespace {

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
      const auto deviation = dataset.deviation.at(channel);
      EXPECT_GT(mean, 0.1) << dataset.name;
      EXPECT_GT(deviation, 0.1) << dataset.name;
      // No values in [0, 1] spread further around their mean.
      EXPECT_LE(deviation * deviation, mean * (1 - mean)) << dataset.name;
      if (dataset.channels == 1) {
        EXPECT_EQ(mean, dataset.mean.at(0)) << dataset.name;
        EXPECT_EQ(deviation, dataset.deviation.at(0)) << dataset.name;
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

}  // namespace
}  // namespace kelvin
