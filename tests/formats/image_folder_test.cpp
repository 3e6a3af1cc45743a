#include "kelvin/formats/image_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/python.h"

namespace kelvin::image_folder_test {

namespace fs = std::filesystem;

using Names = std::vector<std::string>;
using Labels = std::vector<int64_t>;

// Scanning opens no image, so empty files will do.
void make_files(const TemporaryFolder& folder, const Names& names) {
  for (const auto& name : names) {
    const fs::path path = folder / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path).flush();
  }
}

Names relative_paths(const LabelledFiles& files, const fs::path& folder) {
  Names names;
  for (const auto& path : files.paths) names.push_back(path.lexically_relative(folder).string());
  return names;
}

LabelledFiles read_list(const std::string& content) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "list.txt", content);
  return read_image_list(folder / "list.txt", "/images");
}

// Why a list is refused, without its path.
std::string refusal_of_list(const std::string& content) {
  const auto message = error_of([&] { read_list(content); });
  const auto path = message.find("list.txt: ");
  EXPECT_NE(path, std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return path == std::string::npos ? message : message.substr(path + 10);
}

TEST(ScanImageFolder, TakesAFolderPerClassSortedByName) {
  const TemporaryFolder folder;
  make_files(folder, {"dog/2.png", "dog/10.png", "cat/b.jpg", "cat/a.jpg", "Zebra/z.jpeg"});
  const auto files = scan_image_folder(folder.path());
  EXPECT_EQ(files.class_names, (Names{"Zebra", "cat", "dog"}));
  EXPECT_EQ(relative_paths(files, folder.path()),
            (Names{"Zebra/z.jpeg", "cat/a.jpg", "cat/b.jpg", "dog/10.png", "dog/2.png"}));
  EXPECT_EQ(files.labels, (Labels{0, 1, 1, 2, 2}));
  EXPECT_EQ(files.size(), 5);
}

TEST(ScanImageFolder, TakesTheThreeExtensionsInAnyCaseAndNothingElse) {
  const TemporaryFolder folder;
  make_files(folder, {"a/1.JPEG", "a/2.Jpg", "a/3.PNG", "a/4.txt", "a/5", "a/jpg", "a/6.jpg.bak",
                      "readme.txt", "loose.jpg"});
  EXPECT_EQ(relative_paths(scan_image_folder(folder.path()), folder.path()),
            (Names{"a/1.JPEG", "a/2.Jpg", "a/3.PNG"}));
}

TEST(ScanImageFolder, LeavesOutNamesThatBeginWithADot) {
  const TemporaryFolder folder;
  make_files(folder, {"a/1.jpg", "a/.2.jpg", "a/.cache/3.jpg", ".git/4.jpg"});
  const auto files = scan_image_folder(folder.path());
  EXPECT_EQ(files.class_names, Names{"a"});
  EXPECT_EQ(relative_paths(files, folder.path()), Names{"a/1.jpg"});
}

// Names for which the order of whole paths, of path components and of letters differ.
TEST(ScanImageFolder, GivesTheOrderOfTorchvision) {
  const TemporaryFolder folder;
  make_files(folder, {"x/b.jpg", "x/a/z.jpg", "x/a-b/y.jpg", "x/a/n/m.jpg", "x/B.JPG", "x/ä.png",
                      "x/~.png", "x/a.jpg", "y/images/2.png", "y/images/10.png", "Y/1.png"});
  std::ostringstream ours;
  const auto files = scan_image_folder(folder.path());
  for (size_t i = 0; i < files.paths.size(); ++i) {
    ours << files.paths[i].string() << ' ' << files.labels[i] << '\n';
  }
  // What torchvision.datasets.folder.make_dataset does.
  EXPECT_EQ(
      ours.str(),
      python_output("import os, sys\n"
                    "classes = sorted(e.name for e in os.scandir(sys.argv[1]) if e.is_dir())\n"
                    "for label, name in enumerate(classes):\n"
                    "  top = os.path.join(sys.argv[1], name)\n"
                    "  for root, _, files in sorted(os.walk(top, followlinks=True)):\n"
                    "    for file in sorted(files): print(os.path.join(root, file), label)",
                    {folder.path().string()}));
}

TEST(ScanImageFolder, FollowsLinksToFilesAndFolders) {
  const TemporaryFolder folder;
  make_files(folder, {"store/1.jpg", "store/more/2.jpg", "set/a/0.jpg"});
  fs::create_symlink(folder / "store/1.jpg", folder / "set/a/1.jpg");
  fs::create_directory_symlink(folder / "store", folder / "set/b");
  EXPECT_EQ(relative_paths(scan_image_folder(folder / "set"), folder / "set"),
            (Names{"a/0.jpg", "a/1.jpg", "b/1.jpg", "b/more/2.jpg"}));
}

TEST(ScanImageFolder, EndsWhenLinksFormACycle) {
  const TemporaryFolder folder;
  make_files(folder, {"a/1.jpg"});
  fs::create_directory_symlink(folder / "a", folder / "a/again");
  fs::create_directory_symlink(folder.path(), folder / "a/up");
  EXPECT_EQ(relative_paths(scan_image_folder(folder.path()), folder.path()), Names{"a/1.jpg"});
}

// Each folder links to all: the number of paths without repetition is the factorial of twelve.
TEST(ScanImageFolder, EndsWhenManyFoldersLinkToEachOther) {
  const TemporaryFolder folder;
  for (int from = 0; from < 12; ++from) {
    const auto name = "a/" + std::to_string(from);
    make_files(folder, {name + "/1.jpg"});
    for (int to = 0; to < 12; ++to) {
      fs::create_directory_symlink(folder / ("a/" + std::to_string(to)),
                                   folder / (name + "/to" + std::to_string(to)));
    }
  }
  EXPECT_EQ(scan_image_folder(folder.path()).size(), 12);
}

TEST(ScanImageFolder, RefusesAnImageThatIsALinkToNothing) {
  const TemporaryFolder folder;
  make_files(folder, {"a/1.jpg"});
  fs::create_symlink("/no/such/file", folder / "a/note");
  EXPECT_EQ(scan_image_folder(folder.path()).size(), 1);
  fs::create_symlink("/no/such/file", folder / "a/2.jpg");
  EXPECT_EQ(error_of([&] { scan_image_folder(folder.path()); }),
            folder / "a/2.jpg: must be a file, is a link that leads nowhere");
  fs::remove(folder / "a/2.jpg");
  fs::create_symlink("3.jpg", folder / "a/3.jpg");
  EXPECT_EQ(error_of([&] { scan_image_folder(folder.path()); }),
            folder / "a/3.jpg: must be a file, is a link that leads nowhere");
}

TEST(ScanImageFolder, RefusesAFolderWithoutClassesOrImages) {
  const TemporaryFolder folder;
  const auto path = folder.path().string();
  EXPECT_EQ(error_of([&] { scan_image_folder(path); }),
            path + ": must hold a folder per class, has none");
  make_files(folder, {"a/1.jpg", "b/2.txt"});
  EXPECT_EQ(error_of([&] { scan_image_folder(path); }),
            path + "/b: must hold .jpg, .jpeg or .png files for its class, has none");
  EXPECT_EQ(error_of([&] { scan_image_folder(path + "/none"); }),
            path + "/none: cannot list the folder: No such file or directory");
  EXPECT_EQ(error_of([&] { scan_image_folder(path + "/a/1.jpg"); }),
            path + "/a/1.jpg: cannot list the folder: Not a directory");
}

TEST(ScanImageFolder, LabelsGivenClassesInTheirOrder) {
  const TemporaryFolder folder;
  make_files(folder, {"a/1.jpg", "b/2.jpg", "c/3.jpg"});
  const auto files = scan_image_folder(folder.path(), {"c", "a"});
  EXPECT_EQ(files.class_names, (Names{"c", "a"}));
  EXPECT_EQ(relative_paths(files, folder.path()), (Names{"c/3.jpg", "a/1.jpg"}));
  EXPECT_EQ(files.labels, (Labels{0, 1}));
}

TEST(ScanImageFolder, RefusesAMissingClass) {
  const TemporaryFolder folder;
  make_files(folder, {"a/1.jpg"});
  EXPECT_EQ(error_of([&] {
              scan_image_folder(folder.path(), {"a", "b"});
            }),
            folder / "b: the folder of this class is missing");
}

TEST(ReadImageList, ReadsPathsAndLabels) {
  const auto files = read_list("val/b.JPEG 2\nval/a.JPEG 0\r\n\n  x/with space.png   1  \n");
  EXPECT_EQ(relative_paths(files, "/images"),
            (Names{"val/b.JPEG", "val/a.JPEG", "x/with space.png"}));
  EXPECT_EQ(files.labels, (Labels{2, 0, 1}));
  EXPECT_EQ(files.class_names, (Names{"0", "1", "2"}));
}

TEST(ReadImageList, ReadsALastLineWithoutItsEnd) { EXPECT_EQ(read_list("a 0\nb 1").size(), 2); }

TEST(ReadImageList, MakesUnlabelledImagesOneClass) {
  const auto files = read_list("a.jpg -1\nb.jpg -1\n");
  EXPECT_EQ(files.labels, (Labels{0, 0}));
  EXPECT_EQ(files.class_names, Names{"unlabelled"});
}

TEST(ReadImageList, KeepsPathsThatStayBelowTheRoot) {
  const auto files = read_list("a/../b.jpg 0\n./c.jpg 0\n..d/e.jpg 0\n");
  EXPECT_EQ(relative_paths(files, "/images"), (Names{"b.jpg", "c.jpg", "..d/e.jpg"}));
}

TEST(ReadImageList, RefusesPathsThatLeaveTheRoot) {
  const std::string required = "must name a file below the folder of the images, got ";
  EXPECT_EQ(refusal_of_list("a 0\n../b.jpg 0\n"), "line 2: " + required + "'../b.jpg'");
  EXPECT_EQ(refusal_of_list("a/../../b.jpg 0"), "line 1: " + required + "'a/../../b.jpg'");
  EXPECT_EQ(refusal_of_list("\n/etc/passwd 0"), "line 2: " + required + "'/etc/passwd'");
  EXPECT_EQ(refusal_of_list(".. 0"), "line 1: " + required + "'..'");
  EXPECT_EQ(refusal_of_list("a/.. 0"), "line 1: " + required + "'a/..'");
  EXPECT_EQ(refusal_of_list("folder/ 0"), "line 1: " + required + "'folder/'");
  EXPECT_EQ(refusal_of_list(std::string("a\0b 0", 5)), "line 1: " + required + "'a?b'");
}

TEST(ReadImageList, RefusesLinesWithoutALabel) {
  EXPECT_EQ(refusal_of_list("a.jpg 0\nb.jpg\n"), "line 2: must be 'path label', got 'b.jpg'");
  EXPECT_EQ(refusal_of_list("  7 \n"), "line 1: must be 'path label', got '7'");
}

TEST(ReadImageList, RefusesLabelsThatAreNone) {
  const std::string required = "line 1: label must be a whole number from -1 to 999999, got ";
  for (const std::string label :
       {"x", "1.5", "1e3", "-2", "1000000", "0x10", "+1", "99999999999999999999", "--1", "3a"}) {
    EXPECT_EQ(refusal_of_list("a.jpg " + label), required + "'" + label + "'");
  }
  EXPECT_EQ(refusal_of_list("a.jpg " + std::string(1000, '\x01')),
            required + "'" + std::string(60, '?') + "...'");
}

TEST(ReadImageList, RefusesAMixtureOfLabelledAndUnlabelled) {
  EXPECT_EQ(refusal_of_list("a 3\nb -1\n"),
            "line 2: a list must have labels or -1 throughout, got -1 after 3");
  EXPECT_EQ(refusal_of_list("a -1\nb -1\nc 0\n"),
            "line 3: a list must have labels or -1 throughout, got 0 after -1");
}

TEST(ReadImageList, RefusesAnEmptyOrMissingList) {
  EXPECT_EQ(refusal_of_list(""), "must list images, is empty");
  EXPECT_EQ(refusal_of_list("\n \r\n\t\n"), "must list images, is empty");
  EXPECT_EQ(error_of([] { read_image_list("/no/list.txt", "/images"); }),
            "/no/list.txt: cannot read: No such file or directory");
}

TEST(ScanImageFolder, NamesPicturesOfKindsItCannotRead) {
  const TemporaryFolder folder;
  make_files(folder, {"cat/a.jpg", "cat/readme.txt", "cat/deep/b.GIF", "cat/c.webp", "dog/d.png",
                      "dog/e.webp", "dog/f.bmp", "dog/g.TIFF", "dog/.hidden.gif"});
  EXPECT_EQ(error_of([&] { scan_image_folder(folder.path()); }),
            folder.path().string() +
                ": holds 5 pictures of kinds that are not read (1 .bmp, 1 .gif, 1 .tiff, 2 .webp); "
                "must be .jpg, .jpeg or .png: convert them, or move them away");
  EXPECT_EQ(error_of([&] { scan_image_folder(folder.path(), {"cat"}); }),
            folder.path().string() +
                ": holds 2 pictures of kinds that are not read (1 .gif, 1 .webp); must be .jpg, "
                ".jpeg or .png: convert them, or move them away");
  const TemporaryFolder alone;
  make_files(alone, {"cat/a.gif"});
  EXPECT_EQ(error_of([&] { scan_image_folder(alone.path()); }),
            alone.path().string() +
                ": holds 1 picture of kinds that are not read (1 .gif); must be .jpg, .jpeg or "
                ".png: convert them, or move them away");
}

}  // namespace kelvin::image_folder_test
