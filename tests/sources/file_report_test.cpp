#include "kelvin/sources/file_report.h"

#include <gtest/gtest.h>

#include "tests/support/command.h"
#include "tests/support/tiny_dataset.h"

namespace kelvin {
namespace {

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

}  // namespace
}  // namespace kelvin
