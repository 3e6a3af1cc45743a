#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "tests/support/command.h"

namespace kelvin::package_test {

namespace fs = std::filesystem;

CommandResult run_line(const std::string& line) {
  return StartedCommand({"/bin/sh", "-c", line}).wait();
}

// Packages of this build are unpacked side by side, as if they were installed.
TEST(PackagesSlow, HoldWhatTheirNamesSay) {
  for (const char* needed : {"/usr/bin/dpkg-shlibdeps", "/usr/bin/file"}) {
    if (!fs::exists(needed)) GTEST_SKIP() << "no " << needed;
  }
  const TemporaryFolder folder;
  const auto made = run_line("cd " KELVIN_BINARY_DIR " && cpack -B " + folder.path().string());
  ASSERT_EQ(made.exit_code, 0) << made.out << made.err;
  std::map<std::string, fs::path> packages;
  const auto root = folder / "root";
  for (const auto& file : fs::directory_iterator(folder.path())) {
    if (file.path().extension() != ".deb") continue;
    const auto name = run_line("dpkg-deb --field " + file.path().string() + " Package").out;
    packages[name.substr(0, name.find('\n'))] = file.path();
    EXPECT_EQ(run_line("dpkg-deb --extract " + file.path().string() + " " + root).exit_code, 0);
  }
  const auto field = [&](const std::string& package, const std::string& name) {
    return run_line("dpkg-deb --field " + packages.at(package).string() + " " + name).out;
  };
  // "kelvin 0.1.0 (...)": the package is named after major and minor version.
  const auto version = run_tool({"--version"}).out.substr(7);
  const auto libraries = "libkelvin" + version.substr(0, version.find('.', version.find('.') + 1));
  for (const auto& name : {std::string("kelvin"), libraries, std::string("libkelvin-dev"),
                           std::string("python3-kelvin")}) {
    ASSERT_TRUE(packages.contains(name)) << name;
    EXPECT_TRUE(fs::exists(root + "/usr/share/doc/" + name + "/copyright")) << name;
    EXPECT_NE(field(name, "Description").find("\n This package has the "), std::string::npos);
  }
  EXPECT_NE(field("kelvin", "Depends").find(libraries + " (= "), std::string::npos);
  EXPECT_NE(field("libkelvin-dev", "Depends").find(libraries + " (= "), std::string::npos);
  EXPECT_NE(field(libraries, "Depends").find("libtorch"), std::string::npos);
  EXPECT_EQ(field("python3-kelvin", "Architecture"), "all\n");
  for (const char* file :
       {"share/man/man1/kelvin-train.1.gz", "share/bash-completion/completions/kelvin",
        "share/fish/vendor_completions.d/kelvin.fish", "include/kelvin/measures/measure.h",
        "lib/python3/dist-packages/kelvin/__init__.py"}) {
    EXPECT_TRUE(fs::exists(root + "/usr/" + file)) << file;
  }
  const auto listed = run_line(root + "/usr/bin/kelvin list measures");
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  const auto computed = run_line(root + "/usr/bin/kelvin model show mlp");
  EXPECT_EQ(computed.exit_code, 0) << computed.err;
}

}  // namespace kelvin::package_test
