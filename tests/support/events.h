#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.h"

namespace kelvin {

// One event of a TensorBoard file; what it has not is empty.
struct ReadEvent {
  double seconds = 0;
  int64_t step = 0;
  std::string file_version = {};
  std::string session_log = {};
  std::map<std::string, float> values = {};
};

// As Google's protobuf reads the file; a file that breaks a rule of the format fails the test.
inline std::vector<ReadEvent> read_events(const std::filesystem::path& path) {
  const auto result =
      StartedCommand({"/usr/bin/python3",
                      std::string(KELVIN_SOURCE_DIR) + "/tests/support/read_events.py",
                      path.string()})
          .wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::vector<ReadEvent> events;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    const auto fields = nlohmann::json::parse(line);
    ReadEvent event{.seconds = fields.at("seconds"),
                    .step = fields.at("step"),
                    .file_version = fields.value("file_version", ""),
                    .session_log = fields.value("session_log", "")};
    const auto values = fields.value("bits", nlohmann::json::object());
    for (const auto& [name, bits] : values.items()) {
      event.values[name] = std::bit_cast<float>(bits.get<uint32_t>());
    }
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace kelvin
