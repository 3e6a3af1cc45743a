#include "kelvin/sources/known_files.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace kelvin::known_files_test {

std::vector<KnownFile> all_files(const Layout& layout) {
  auto files = layout.train_files;
  files.insert(files.end(), layout.test_files.begin(), layout.test_files.end());
  files.insert(files.end(), layout.other_files.begin(), layout.other_files.end());
  return files;
}

bool is_md5(const std::string& text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

TEST(KnownFiles, LieInTheFolderOfTheirLayout) {
  for (const auto& dataset : known_datasets()) {
    ASSERT_FALSE(dataset.layouts.empty()) << dataset.name;
    for (const auto& layout : dataset.layouts) {
      for (const auto& file : all_files(layout)) {
        EXPECT_TRUE(file.path.starts_with(layout.folder + "/")) << file.path;
        EXPECT_TRUE(file.md5.empty() || is_md5(file.md5)) << file.path;
        EXPECT_GE(file.bytes, 0) << file.path;
      }
    }
  }
}

TEST(KnownFiles, AreThereForBothSplitsExceptInImageFolders) {
  for (const auto& dataset : known_datasets()) {
    for (const auto& layout : dataset.layouts) {
      const bool is_folder = layout.format == StoredFormat::image_folder;
      EXPECT_EQ(layout.train_files.empty(), is_folder) << layout.folder;
      EXPECT_EQ(layout.test_files.empty(), is_folder) << layout.folder;
      EXPECT_EQ(layout.label_key.empty(), layout.format != StoredFormat::cifar_pickle);
      EXPECT_LT(layout.label_index, layout.label_bytes) << layout.folder;
    }
  }
}

// The sizes follow from counts and shapes, so that a slip in either shows.
TEST(KnownFiles, HaveTheSizesOfTheirImages) {
  for (const auto& dataset : known_datasets()) {
    const auto image = dataset.channels * dataset.height * dataset.width;
    int64_t train = 0;
    int64_t test = 0;
    for (const auto count : dataset.train_counts) train += count;
    for (const auto count : dataset.test_counts) test += count;
    for (const auto& layout : dataset.layouts) {
      if (layout.format == StoredFormat::idx) {
        EXPECT_EQ(layout.train_files.at(0).bytes, 16 + train * image) << dataset.name;
        EXPECT_EQ(layout.train_files.at(1).bytes, 8 + train) << dataset.name;
        EXPECT_EQ(layout.test_files.at(0).bytes, 16 + test * image) << dataset.name;
        EXPECT_EQ(layout.test_files.at(1).bytes, 8 + test) << dataset.name;
      }
      if (layout.format != StoredFormat::cifar_binary) continue;
      int64_t train_bytes = 0;
      for (const auto& file : layout.train_files) train_bytes += file.bytes;
      EXPECT_EQ(train_bytes, train * (layout.label_bytes + image)) << dataset.name;
      EXPECT_EQ(layout.test_files.at(0).bytes, test * (layout.label_bytes + image));
    }
  }
}

TEST(KnownFiles, ShareNoContent) {
  std::map<std::string, std::string> owners;
  for (const auto& dataset : known_datasets()) {
    for (const auto& layout : dataset.layouts) {
      for (const auto& file : all_files(layout)) {
        if (file.md5.empty()) continue;
        const auto [owner, is_new] = owners.emplace(file.md5, file.path);
        EXPECT_EQ(owner->second, file.path) << file.md5;
      }
    }
  }
  EXPECT_GT(owners.size(), 20U);
}

TEST(KnownFiles, ComeWithCompleteAddressesSizesAndSums) {
  for (const auto& dataset : known_datasets()) {
    for (const auto& route : dataset.routes) {
      EXPECT_FALSE(route.downloads.empty()) << dataset.name;
      for (const auto& download : route.downloads) {
        EXPECT_GT(download.bytes, 0) << download.file_name;
        EXPECT_TRUE(is_md5(download.md5)) << download.file_name;
        EXPECT_FALSE(download.mirrors.empty()) << download.file_name;
        EXPECT_EQ(download.file_name.find('/'), std::string::npos) << download.file_name;
        for (const auto& mirror : download.mirrors) {
          EXPECT_FALSE(mirror.ends_with("/")) << mirror;
          EXPECT_TRUE(mirror.starts_with("http://") || mirror.starts_with("https://") ||
                      mirror.starts_with("npm:") || mirror.starts_with("debian:"))
              << mirror;
        }
      }
    }
  }
}

TEST(KnownFiles, GiveEveryDownloadANameOfItsOwn) {
  std::map<std::string, std::string> sums;
  for (const auto& dataset : known_datasets()) {
    for (const auto& route : dataset.routes) {
      for (const auto& download : route.downloads) {
        const auto [known, is_new] = sums.emplace(download.file_name, download.md5);
        EXPECT_EQ(known->second, download.md5) << download.file_name;
      }
    }
  }
  EXPECT_EQ(sums.size(), 19U);
}

TEST(KnownFiles, OfMnistHaveAddressesWithTheNamesOfTheMirrors) {
  const auto download = mnist_files().routes.at(0).downloads.at(2);
  EXPECT_EQ(download.file_name, "mnist-t10k-images-idx3-ubyte.gz");
  EXPECT_EQ(download.mirrors.at(0),
            "https://ossci-datasets.s3.amazonaws.com/mnist/t10k-images-idx3-ubyte.gz");
}

TEST(KnownFiles, OfTheCoarseLabelsAreThoseOfTheFineOnes) {
  const auto fine = cifar100_files();
  const auto coarse = cifar100_coarse_files();
  ASSERT_EQ(fine.layouts.size(), coarse.layouts.size());
  for (size_t i = 0; i < fine.layouts.size(); ++i) {
    EXPECT_EQ(fine.layouts.at(i).train_files.at(0).md5, coarse.layouts.at(i).train_files.at(0).md5);
  }
  EXPECT_EQ(fine.layouts.at(0).label_index, 1);
  EXPECT_EQ(coarse.layouts.at(0).label_index, 0);
  EXPECT_EQ(coarse.layouts.at(1).label_key, "coarse_labels");
  EXPECT_EQ(fine.routes.at(0).downloads.at(0).md5, coarse.routes.at(0).downloads.at(0).md5);
}

}  // namespace kelvin::known_files_test
