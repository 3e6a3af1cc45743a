#include "kelvin/sources/verify.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/python.h"
#include "tests/support/tiny_dataset.h"

namespace kelvin::verify_test {

const KnownFile kAbc = {"x/abc", 3, "900150983cd24fb0d6963f7d28e17f72"};

class ReportFile : public testing::Test {
 protected:
  FileReport report(const KnownFile& file, StoredFormat format = StoredFormat::idx) const {
    return report_file(file, format, folder_.path());
  }

  TemporaryFolder folder_;
};

TEST_F(ReportFile, KnowsTheOfficialFile) {
  write_to(folder_ / "x/abc", "abc");
  const auto found = report(kAbc);
  EXPECT_EQ(found.state, FileState::official);
  EXPECT_EQ(found.path, folder_ / "x/abc");
  EXPECT_EQ(found.bytes, 3);
  EXPECT_EQ(found.md5, kAbc.md5);
  EXPECT_EQ(found.problem, "");
}

TEST_F(ReportFile, SaysWhatDiffers) {
  write_to(folder_ / "x/abc", "abcd");
  auto found = report(kAbc);
  EXPECT_EQ(found.state, FileState::differs);
  EXPECT_EQ(found.problem, folder_ / "x/abc" + ": must have 3 bytes, has 4");
  write_to(folder_ / "x/abc", "abd");
  found = report(kAbc);
  EXPECT_EQ(found.state, FileState::differs);
  EXPECT_EQ(found.problem,
            folder_ / "x/abc" + ": must have md5 " + kAbc.md5 + ", has " + md5_of("abd"));
}

TEST_F(ReportFile, SaysWhatIsMissing) {
  const auto found = report(kAbc);
  EXPECT_EQ(found.state, FileState::missing);
  EXPECT_EQ(found.problem, folder_ / "x/abc" + ": is missing");
}

TEST_F(ReportFile, LooksIntoPackedIdxFiles) {
  write_to(folder_ / "x/abc.gz", gzipped("abc"));
  const auto found = report(kAbc);
  EXPECT_EQ(found.state, FileState::official);
  EXPECT_EQ(found.path, folder_ / "x/abc.gz");
  EXPECT_EQ(found.bytes, 3);
  EXPECT_EQ(report(kAbc, StoredFormat::cifar_binary).state, FileState::missing);
}

TEST_F(ReportFile, TakesDamagedOnesForDifferent) {
  write_to(folder_ / "x/abc.gz", gzipped("abc").substr(0, 15));
  EXPECT_EQ(report(kAbc).state, FileState::differs);
  write_to(folder_ / "x/abc.gz", gzipped(std::string(1 << 20, 'x')));
  EXPECT_EQ(report(kAbc).state, FileState::differs);
  std::filesystem::create_directories(folder_ / "x/abc");
  EXPECT_EQ(report(kAbc).problem, folder_ / "x/abc" + ": is a folder, must be a file");
}

TEST_F(ReportFile, ComparesWithNothingIfNothingIsPublished) {
  write_to(folder_ / "x/abc", "anything");
  EXPECT_EQ(report({"x/abc"}).state, FileState::unpublished);
  EXPECT_EQ(report({"x/abc", 3}).state, FileState::differs);
}

TEST(AllFiles, BeginsWithImagesAndLabels) {
  const auto files = all_files(
      {.folder = "x", .train_files = {{"a"}}, .test_files = {{"b"}}, .other_files = {{"c"}}});
  ASSERT_EQ(files.size(), 3U);
  EXPECT_EQ(files.at(0).path + files.at(1).path + files.at(2).path, "abc");
}

TEST(PixelStatistics, OfAClosedForm) {
  // Channel 0: half 0, half 255.  Channel 1: constant.
  const RawImages images{.channels = 2,
                         .height = 1,
                         .width = 2,
                         .pixels = {0, 255, 51, 51, 255, 0, 51, 51},
                         .labels = {0, 0}};
  const auto statistics = pixel_statistics(images);
  EXPECT_EQ(statistics.mean, (std::vector<double>{0.5, 0.2}));
  EXPECT_EQ(statistics.std_dev, (std::vector<double>{0.5, 0}));
}

// Larger than the rows in which 32 bits are summed.
TEST(PixelStatistics, EqualNumpyOnLargeImages) {
  RawImages images{.channels = 3, .height = 300, .width = 301, .labels = {0, 1}};
  for (int64_t i = 0; i < 2 * images.image_bytes(); ++i) {
    images.pixels.push_back(static_cast<uint8_t>(255 - (i * i + i / 7) % 23));
  }
  const auto statistics = pixel_statistics(images);
  std::istringstream expected(python_output(R"(
import numpy as np
i = np.arange(2 * 3 * 300 * 301)
x = (255 - (i * i + i // 7) % 23).reshape(2, 3, -1) / 255
print(*x.mean((0, 2)), *x.std((0, 2)))
)"));
  for (const auto& values : {statistics.mean, statistics.std_dev}) {
    for (const auto value : values) {
      double number = 0;
      ASSERT_TRUE(expected >> number);
      EXPECT_NEAR(value, number, 1e-12);
    }
  }
}

TEST(PixelStatistics, DoNotOverflowOnWhite) {
  RawImages images{.channels = 1, .height = 500, .width = 500, .labels = {0}};
  images.pixels.assign(250'000, 255);
  EXPECT_EQ(pixel_statistics(images).mean.at(0), 1);
  EXPECT_EQ(pixel_statistics(images).std_dev.at(0), 0);
}

TEST(PixelStatistics, NeedPixelsThatFitTheShape) {
  EXPECT_EQ(error_of([] { pixel_statistics({}); }),
            "pixel statistics: need at least one image, got none");
  EXPECT_EQ(
      error_of([] {
        pixel_statistics({.channels = 1, .height = 2, .width = 2, .pixels = {1}, .labels = {0}});
      }),
      "pixel statistics: the shape needs 4 bytes, got 1");
}

namespace fs = std::filesystem;

class Verify : public testing::Test {
 protected:
  Verify() { write_tiny(tiny_, folder_.path()); }

  VerifyReport report() const { return verify(tiny_.known, folder_.path()); }

  // Why it is wrong, after the folder's or the file's path.
  std::string reason() const {
    const auto result = report();
    EXPECT_EQ(result.verdict, DataVerdict::wrong);
    EXPECT_EQ(result.reason.find('\n'), std::string::npos);
    const auto where = folder_ / kTinyFolder;
    EXPECT_EQ(result.reason.rfind(where, 0), 0U) << result.reason;
    return result.reason.substr(where.size());
  }

  std::string file(const std::string& name) const { return folder_ / kTinyFolder + "/" + name; }

  Layout& layout() { return tiny_.known.layouts.front(); }

  // As if nothing were known about the files but what they hold.
  void forget_sums() {
    for (auto* files : {&layout().train_files, &layout().test_files}) {
      for (auto& known : *files) known.md5.clear();
    }
  }

  TemporaryFolder folder_;
  TinyDataset tiny_ = tiny_dataset();
};

TEST_F(Verify, KnowsTheOfficialDataset) {
  const auto result = report();
  EXPECT_EQ(result.verdict, DataVerdict::official) << result.reason;
  EXPECT_EQ(result.reason, "");
  EXPECT_EQ(result.name, "tiny");
  EXPECT_EQ(result.folder, folder_ / kTinyFolder);
  ASSERT_EQ(result.files.size(), 4U);
  for (const auto& each : result.files) EXPECT_EQ(each.state, FileState::official) << each.path;
  ASSERT_EQ(result.splits.size(), 2U);
  EXPECT_EQ(result.splits.at(0).name, "train");
  EXPECT_EQ(result.splits.at(0).samples, 4);
  EXPECT_EQ(result.splits.at(0).counts, (std::vector<int64_t>{2, 2}));
  EXPECT_NEAR(result.splits.at(0).statistics.mean.at(0), tiny_.known.mean.at(0), 1e-12);
  EXPECT_NEAR(result.splits.at(0).statistics.std_dev.at(0), tiny_.known.std_dev.at(0), 1e-12);
  EXPECT_EQ(result.splits.at(1).name, "test");
  EXPECT_EQ(result.splits.at(1).counts, (std::vector<int64_t>{1, 1}));
  EXPECT_TRUE(result.splits.at(1).statistics.mean.empty());
}

TEST_F(Verify, TakesPackedFilesForOfficial) {
  for (const auto& [name, bytes] : tiny_.files) {
    fs::remove(file(name));
    write_to(file(name) + ".gz", gzipped(bytes));
  }
  EXPECT_EQ(report().verdict, DataVerdict::official);
}

TEST_F(Verify, NamesTheFileThatDiffers) {
  auto bytes = tiny_.files.at("test-images");
  bytes.back() = 'x';
  write_to(file("test-images"), bytes);
  const auto why = reason();
  EXPECT_EQ(why.rfind("/test-images: must have md5 ", 0), 0U) << why;
  write_to(file("test-images"), bytes + "more");
  EXPECT_EQ(reason(), "/test-images: must hold at most 24 bytes, has 28");
}

TEST_F(Verify, NamesTheFileThatIsMissing) {
  fs::remove(file("train-labels"));
  EXPECT_EQ(reason(), "/train-labels: is missing; ask somebody");
}

TEST_F(Verify, CallsContentEqualIfNoSumIsPublished) {
  forget_sums();
  EXPECT_EQ(report().verdict, DataVerdict::equal_content);
}

TEST_F(Verify, CallsContentEqualIfTheContainerMayDiffer) {
  layout().md5_may_differ = true;
  EXPECT_EQ(report().verdict, DataVerdict::official);
  layout().train_files.front().md5 = md5_of("something else");
  layout().train_files.front().bytes = 77;
  const auto result = report();
  EXPECT_EQ(result.verdict, DataVerdict::equal_content);
  EXPECT_EQ(result.files.front().state, FileState::differs);
}

TEST_F(Verify, ComparesCountsWithThePublished) {
  tiny_.known.train_counts = {3, 1};
  EXPECT_EQ(reason(), ": the train split must have 3 images of class 'first', has 2");
  tiny_.known.train_counts = {};
  EXPECT_EQ(report().verdict, DataVerdict::official);
  tiny_.known.test_counts = {1, 2};
  EXPECT_EQ(reason(), ": the test split must have 2 images of class 'second', has 1");
}

TEST_F(Verify, ComparesPixelsWithThePublishedToHalfOfTheFourthDigit) {
  const auto mean = tiny_.known.mean;
  tiny_.known.mean.at(0) += 4.9e-5;
  EXPECT_EQ(report().verdict, DataVerdict::official);
  tiny_.known.mean.at(0) += 0.2e-5;
  EXPECT_NE(reason().find("the mean of channel 0 of the training pixels must be "),
            std::string::npos);
  tiny_.known.mean = mean;
  tiny_.known.std_dev.at(0) -= 5.1e-5;
  EXPECT_NE(reason().find("the deviation of channel 0"), std::string::npos);
}

TEST_F(Verify, SaysThatALabelIsImpossible) {
  forget_sums();
  write_to(file("train-labels"), big_endian({0x801, 4}) + std::string("\0\1\7\0", 4));
  const auto result = report();
  EXPECT_EQ(result.verdict, DataVerdict::wrong);
  EXPECT_NE(result.reason.find("train-labels"), std::string::npos) << result.reason;
}

TEST_F(Verify, DoesNotMissWhatIsNotNeeded) {
  layout().other_files = {{kTinyFolder + "/names", 5, md5_of("names")}};
  EXPECT_EQ(report().verdict, DataVerdict::official);
  EXPECT_EQ(report().files.back().state, FileState::missing);
  write_to(file("names"), "other");
  EXPECT_EQ(reason().rfind("/names: must have md5", 0), 0U);
}

TEST_F(Verify, NeedsTheDataset) {
  const TemporaryFolder empty;
  EXPECT_NE(error_of([&] { verify(tiny_.known, empty.path()); }).find("tiny"), std::string::npos);
}

// A folder with train and val, two classes, two images each.
class VerifyImageFolder : public testing::Test {
 protected:
  VerifyImageFolder() {
    python_output(R"(
import os, sys
from PIL import Image
for split in 'train', 'val':
    for name in 'cat', 'dog':
        os.makedirs(f'{sys.argv[1]}/{split}/{name}')
        for i in range(2):
            image = Image.effect_noise((40 + i, 30), 50).convert('RGB')
            image.save(f'{sys.argv[1]}/{split}/{name}/{i}.' + ('jpg' if i else 'png'))
)",
                  {folder_ / "x"});
  }

  VerifyReport report(const VerifyOptions& options = {}) const {
    return verify_image_folder(folder_ / "x", options);
  }

  TemporaryFolder folder_;
};

TEST_F(VerifyImageFolder, CountsWhatCanBeRead) {
  int64_t done = 0;
  int64_t total = 0;
  const auto result = report({.progress = [&](int64_t now, int64_t all) {
    EXPECT_EQ(now, ++done);
    total = all;
  }});
  EXPECT_EQ(result.verdict, DataVerdict::readable) << result.reason;
  EXPECT_EQ(total, 8);
  EXPECT_EQ(done, 8);
  ASSERT_EQ(result.splits.size(), 2U);
  EXPECT_EQ(result.splits.at(0).name, "train");
  EXPECT_EQ(result.splits.at(1).name, "val");
  EXPECT_EQ(result.splits.at(1).samples, 4);
  EXPECT_EQ(result.splits.at(1).counts, (std::vector<int64_t>{2, 2}));
}

TEST_F(VerifyImageFolder, TakesOneWithoutSplitsToo) {
  const auto result = verify_image_folder(folder_ / "x/train");
  EXPECT_EQ(result.verdict, DataVerdict::readable) << result.reason;
  ASSERT_EQ(result.splits.size(), 1U);
  EXPECT_EQ(result.splits.at(0).name, "all");
}

TEST_F(VerifyImageFolder, NamesAnImageWithoutAHeader) {
  write_to(folder_ / "x/val/dog/1.jpg", "no image");
  const auto result = report();
  EXPECT_EQ(result.verdict, DataVerdict::wrong);
  EXPECT_EQ(result.reason.rfind(folder_ / "x/val/dog/1.jpg" + ": ", 0), 0U) << result.reason;
}

TEST_F(VerifyImageFolder, NoticesACutImageOnlyIfThorough) {
  const auto path = folder_ / "x/val/dog/1.jpg";
  const auto bytes = whole_file(path);
  write_to(path, bytes.substr(0, bytes.size() - 200));
  EXPECT_EQ(report().verdict, DataVerdict::readable);
  const auto result = report({.thorough = true});
  EXPECT_EQ(result.verdict, DataVerdict::wrong);
  EXPECT_EQ(result.reason.rfind(path + ": ", 0), 0U) << result.reason;
}

TEST_F(VerifyImageFolder, WantsTheSameClassesInEachSplit) {
  fs::rename(folder_ / "x/val/dog", folder_ / "x/val/bird");
  const auto result = report();
  EXPECT_EQ(result.verdict, DataVerdict::wrong);
  EXPECT_EQ(result.reason, folder_ / "x/val" + ": must have the 2 classes of " +
                               folder_ / "x/train" + ", has 2 that are not all the same");
}

TEST_F(VerifyImageFolder, FindsAClassWithoutImagesWrong) {
  fs::create_directory(folder_ / "x/train/empty");
  EXPECT_EQ(report().verdict, DataVerdict::wrong);
}

TEST_F(VerifyImageFolder, NeedsAFolder) {
  EXPECT_EQ(error_of([&] { verify_image_folder(folder_ / "no"); }),
            folder_ / "no" + ": no such folder");
}

TEST_F(VerifyImageFolder, IsToldByItsSplits) {
  EXPECT_TRUE(looks_like_image_folder(folder_ / "x"));
  EXPECT_FALSE(looks_like_image_folder(folder_ / "x/train"));
  EXPECT_FALSE(looks_like_image_folder(folder_ / "no"));
  fs::rename(folder_ / "x/val", folder_ / "x/test");
  EXPECT_TRUE(looks_like_image_folder(folder_ / "x"));
  fs::remove_all(folder_ / "x/test");
  EXPECT_FALSE(looks_like_image_folder(folder_ / "x"));
}

TEST_F(VerifyImageFolder, VerifiesKnownDatasetsOfThisKind) {
  KnownDataset pets{.name = "pets",
                    .class_names = {"cat", "dog"},
                    .layouts = {{.format = StoredFormat::image_folder, .folder = "x"}}};
  EXPECT_EQ(verify(pets, folder_.path()).verdict, DataVerdict::readable);
  pets.train_counts = {2, 3};
  EXPECT_EQ(verify(pets, folder_.path()).reason,
            folder_ / "x" + ": the train split must have 3 images of class 'dog', has 2");
  pets.class_names.emplace_back("bird");
  EXPECT_EQ(verify(pets, folder_.path()).verdict, DataVerdict::wrong);
}

}  // namespace kelvin::verify_test
