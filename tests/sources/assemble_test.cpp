#include "kelvin/sources/assemble.h"

#include <gtest/gtest.h>

#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/python.h"
#include "tests/support/tiny_dataset.h"

namespace kelvin::assemble_test {

namespace fs = std::filesystem;

class Assemble : public testing::Test {
 protected:
  Assemble() {
    fs::create_directory(folder_ / "scratch");
    fs::create_directory(folder_ / "root");
    fs::create_directory(folder_ / "in");
  }

  // The dataset's files as downloads, each changed by `change` and with `suffix` after its name.
  template <class Change>
  std::vector<DownloadedFile> downloads(const std::string& suffix, const Change& change) const {
    std::vector<DownloadedFile> list;
    for (const auto& [name, bytes] : tiny_.files) {
      list.push_back({name + suffix, folder_ / "in/other-" + name});
      write_to(list.back().path, change(bytes));
    }
    return list;
  }

  // A tar of what lies in the folder `in`.
  std::vector<DownloadedFile> archive() const {
    python_output(
        "import sys, tarfile\nwith tarfile.open(sys.argv[2], 'w:gz') as t: "
        "t.add(sys.argv[1], 'package')",
        {folder_ / "in", folder_ / "x.tgz"});
    return {{"x.tgz", folder_ / "x.tgz"}};
  }

  void run(Unpacking unpacking, const std::vector<DownloadedFile>& files) const {
    assemble(tiny_.known, unpacking, files, folder_ / "scratch", folder_ / "root");
  }

  void expect_all() const {
    for (const auto& [name, bytes] : tiny_.files) {
      EXPECT_EQ(whole_file(folder_ / "root/tiny/raw/" + name), bytes) << name;
    }
  }

  TemporaryFolder folder_;
  TinyDataset tiny_ = tiny_dataset();
};

const auto kSame = [](const std::string& bytes) { return bytes; };

TEST_F(Assemble, MovesPlainFiles) {
  run(Unpacking::copy, downloads("", kSame));
  expect_all();
  EXPECT_TRUE(fs::is_empty(folder_ / "in"));
}

TEST_F(Assemble, InflatesPackedFiles) {
  run(Unpacking::gunzip, downloads(".gz", gzipped));
  expect_all();
}

TEST_F(Assemble, FindsFilesInAnArchive) {
  for (const auto& [name, bytes] : tiny_.files) write_to(folder_ / "in/sub/" + name, bytes);
  write_to(folder_ / "in/README", "unwanted");
  run(Unpacking::archive, archive());
  expect_all();
  EXPECT_FALSE(fs::exists(folder_ / "root/tiny/raw/README"));
}

TEST_F(Assemble, FindsPackedFilesInAnArchive) {
  for (const auto& [name, bytes] : tiny_.files) {
    write_to(folder_ / "in/" + name + ".gz", gzipped(bytes));
  }
  run(Unpacking::archive, archive());
  expect_all();
}

TEST_F(Assemble, RefusesAFileThatDiffers) {
  const auto& file = tiny_.known.layouts.front().train_files.front();
  const auto changed = downloads("", [&](std::string bytes) {
    bytes.back() = 'x';
    return bytes;
  });
  const auto error = error_of([&] { run(Unpacking::copy, changed); });
  EXPECT_EQ(error.rfind("tiny/raw/train-images: must have md5 " + file.md5 + ", has ", 0), 0U)
      << error;
}

TEST_F(Assemble, RefusesAFileThatIsTooLong) {
  const auto changed = downloads(
      ".gz", [](const std::string& bytes) { return gzipped(bytes + std::string(1 << 20, 'x')); });
  EXPECT_NE(error_of([&] { run(Unpacking::gunzip, changed); }), "");
}

TEST_F(Assemble, NeedsImagesAndLabelsButNotTheRest) {
  tiny_.known.layouts.front().other_files = {{kTinyFolder + "/names.txt"}};
  run(Unpacking::copy, downloads("", kSame));
  expect_all();
  fs::remove_all(folder_ / "root");
  auto files = downloads("", kSame);
  files.pop_back();
  EXPECT_EQ(error_of([&] { run(Unpacking::copy, files); }), "tiny/raw/train-labels: is missing");
}

}  // namespace kelvin::assemble_test
