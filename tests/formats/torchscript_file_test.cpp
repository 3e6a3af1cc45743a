#include "kelvin/formats/torchscript_file.h"

#include <gtest/gtest.h>

#include <string>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/python.h"

namespace kelvin::torchscript_file_test {

// A zip with such members, each of a few bytes.
std::string zip_of(const std::string& members) {
  const TemporaryFolder folder;
  python_output(
      "import sys, zipfile\n"
      "with zipfile.ZipFile(sys.argv[1], 'w') as z:\n"
      "    for name in sys.argv[2].split(): z.writestr(name, 'content')",
      {folder / "x.pt", members});
  return read_file(folder / "x.pt");
}

bool is_one(const std::string& bytes) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "x.pt", bytes);
  return is_torchscript_file(folder / "x.pt");
}

TEST(TorchscriptFile, HasConstantsBesideItsWeights) {
  EXPECT_TRUE(is_one(zip_of("net/data.pkl net/code/__torch__.py net/constants.pkl net/version")));
}

TEST(TorchscriptFile, IsNoFileOfTorchSave) {
  EXPECT_FALSE(is_one(zip_of("archive/data.pkl archive/data/0 archive/version")));
}

TEST(TorchscriptFile, IsNothingThatIsNoZip) {
  EXPECT_FALSE(is_one(""));
  EXPECT_FALSE(is_one("PK\x03\x04"));
  EXPECT_FALSE(is_one(std::string(1000, 'x')));
  EXPECT_FALSE(is_torchscript_file("/no/such.pt"));
  EXPECT_FALSE(is_torchscript_file("/dev/zero"));
}

TEST(TorchscriptFile, IsNoneIfItIsCutOffAnywhere) {
  const auto whole = zip_of("net/data.pkl net/constants.pkl");
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(is_one(whole.substr(0, length))) << length;
  }
}

}  // namespace kelvin::torchscript_file_test
