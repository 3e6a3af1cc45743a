#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/fake_run.h"
#include "tests/support/python.h"

// What is written where a flag says replaces nothing but what kelvin wrote there itself.

namespace kelvin::output_file_test {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr auto kOod = "somebody's only copy of a thesis\n";

class OutputFile : public testing::Test {
 protected:
  OutputFile() {
    write_fake_run(folder_.path() / "runs/a", 1, 0, 90);
    python_output(
        "import sys, numpy as np\n"
        "r = np.random.default_rng(0)\n"
        "for name in ['a', 'b', 'c']:\n"
        "    np.savez(f'{sys.argv[1]}/{name}.npz', logits=r.normal(size=(60, 3)),\n"
        "             labels=r.integers(0, 3, 60), features=r.normal(size=(60, 4)))",
        {folder_.path().string()});
  }

  std::string at(const std::string& name) const { return folder_ / name; }

  // Twice in a row it writes; what somebody put there instead it leaves alone, and says so at once.
  void expect_replaces_its_own_alone(const Words& words, const std::string& output) const {
    for (const int time : {1, 2}) {
      const auto result = run_tool(words);
      EXPECT_EQ(result.exit_code, 0) << time << ": " << result.err;
      ASSERT_TRUE(fs::is_regular_file(output)) << output;
    }
    write_file_atomically(output, kOod);
    const auto refused = run_tool(words);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_EQ(refused.out, "");
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
    EXPECT_NE(refused.err.find(output + ": exists, and kelvin did not write it"), std::string::npos)
        << refused.err;
    EXPECT_EQ(read_file(output), kOod);
    EXPECT_FALSE(fs::exists(output + ".part"));
  }

  TemporaryFolder folder_;
};

TEST_F(OutputFile, OfReportsIsAPageOrAFigureOfOurs) {
  expect_replaces_its_own_alone({"report", at("runs"), "--output", at("page.html")},
                                at("page.html"));
  expect_replaces_its_own_alone({"report", at("runs")}, at("runs/report.html"));
  const Words figures = {"report", at("runs"),   "--output", at("new.html"),
                         "--csv",  at("tables"), "--svg",    at("figures")};
  expect_replaces_its_own_alone(figures, at("tables/fit-and-collapse.csv"));
  fs::remove(at("tables/fit-and-collapse.csv"));
  ASSERT_EQ(run_tool(figures).exit_code, 0);
  for (const auto& figure : fs::directory_iterator(at("figures"))) {
    expect_replaces_its_own_alone(figures, figure.path().string());
    return;
  }
  ADD_FAILURE() << "no figures";
}

TEST_F(OutputFile, OfArraysIsAnNpzOfOurs) {
  expect_replaces_its_own_alone(
      {"measure", at("a.npz"), "--measures", "layer_spectrum", "--output", at("spectra.npz"), "-q"},
      at("spectra.npz"));
  expect_replaces_its_own_alone({"calibrate", at("a.npz"), "--output", at("curves.npz"), "-q"},
                                at("curves.npz"));
  // An npz of somebody else is of the right kind, but not ours.
  const auto dump = read_file(at("b.npz"));
  const auto result = run_tool({"measure", at("a.npz"), "--output", at("b.npz")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("kelvin did not write it"), std::string::npos) << result.err;
  EXPECT_EQ(read_file(at("b.npz")), dump);
}

TEST_F(OutputFile, OfScoresIsAFolderOfOurs) {
  expect_replaces_its_own_alone(
      {"ood", "--id-train", at("a.npz"), "--id-test", at("b.npz"), "--ood", "c=" + at("c.npz"),
       "--detectors", "msp", "--output", at("scores"), "-q"},
      at("scores/msp@c.csv"));
}

TEST_F(OutputFile, OfPicturesIsAPngOfOurs) {
  expect_replaces_its_own_alone(
      {"data", "show", "glyphs10", "--count", "2", "--output", at("mosaic.png")}, at("mosaic.png"));
  // It is still a PNG for others.
  run_tool({"data", "show", "glyphs10", "--count", "2", "--output", at("other.png")});
  EXPECT_EQ(python_output("import sys, struct, zlib\n"
                          "b = open(sys.argv[1], 'rb').read()\n"
                          "at, names = 8, []\n"
                          "while at < len(b):\n"
                          "    n, = struct.unpack('>I', b[at:at + 4])\n"
                          "    crc, = struct.unpack('>I', b[at + 8 + n:at + 12 + n])\n"
                          "    assert zlib.crc32(b[at + 4:at + 8 + n]) == crc\n"
                          "    names.append(b[at + 4:at + 8].decode())\n"
                          "    at += 12 + n\n"
                          "print(names[0], 'tEXt' in names, names[-1])",
                          {at("other.png")}),
            "IHDR True IEND\n");
}

TEST_F(OutputFile, OfTheDemoIsAReportOfOurs) {
  fs::create_directories(at("demo"));
  write_file_atomically(at("demo/report.html"), kOod);
  const auto result = run_tool({"demo", "--scale", "smoke", "--output", at("demo")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("report.html: exists, and kelvin did not write it"), std::string::npos)
      << result.err;
  EXPECT_EQ(read_file(at("demo/report.html")), kOod);
}

TEST_F(OutputFile, MayBeThereAndEmpty) {
  write_file_atomically(at("empty.html"), "");
  EXPECT_EQ(run_tool({"report", at("runs"), "--output", at("empty.html")}).exit_code, 0);
}

TEST_F(OutputFile, OfScoresMayCarryALongName) {
  const std::string name(240, 'n');
  for (const int time : {1, 2}) {
    const auto result =
        run_tool({"ood", "--id-train", at("a.npz"), "--id-test", at("b.npz"), "--ood",
                  name + "=" + at("c.npz"), "--detectors", "msp", "--output", at("scores"), "-q"});
    EXPECT_EQ(result.exit_code, 0) << time << ": " << result.err;
  }
}

}  // namespace kelvin::output_file_test
