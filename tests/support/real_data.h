#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace kelvin {

// For tests on published data, which lie where KELVIN_DATA says.  Without them the tests are
// skipped, or fail if KELVIN_REQUIRE_DATA is 1.
class RealData : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("KELVIN_DATA");
    const char* required = std::getenv("KELVIN_REQUIRE_DATA");
    if (folder != nullptr && *folder != '\0') {
      folder_ = folder;
    } else if (required != nullptr && std::string(required) == "1") {
      FAIL() << "KELVIN_REQUIRE_DATA is 1, but KELVIN_DATA names no folder";
    } else {
      GTEST_SKIP() << "KELVIN_DATA names no folder with real data";
    }
  }

  const std::filesystem::path& data_folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

}  // namespace kelvin
