#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <string>

#include "kelvin/runs/run_folder.h"
#include "tests/support/command.h"

namespace kelvin {

// Lines of metrics.jsonl without what time decides.
inline std::string timeless_metrics(const std::filesystem::path& run) {
  std::istringstream lines(whole_file(run / "metrics.jsonl"));
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    auto fields = nlohmann::ordered_json::parse(line);
    fields.erase("seconds");
    fields.erase("images_per_second");
    text += fields.dump() + "\n";
  }
  return text;
}

// What is kept of each look besides the lines, by name.
inline std::map<std::string, std::string> kept_snapshots(const std::filesystem::path& run) {
  std::map<std::string, std::string> files;
  if (!std::filesystem::exists(run / "trajectory")) return files;
  for (const auto& entry : std::filesystem::directory_iterator(run / "trajectory")) {
    files[entry.path().filename()] = whole_file(entry.path());
  }
  return files;
}

// Two runs of one config are the same to the last bit, but for the time they took.
inline void expect_same_run(const std::filesystem::path& actual,
                            const std::filesystem::path& expected) {
  EXPECT_EQ(load_run(actual).status, RunStatus::finished);
  for (const char* name :
       {"checkpoints/last/model.safetensors", "checkpoints/last/training.safetensors",
        "trajectory.jsonl", "trajectory_definitions.json", "notes.jsonl", "readings.jsonl",
        "definitions.json"}) {
    EXPECT_EQ(whole_file(actual / name), whole_file(expected / name)) << name;
  }
  EXPECT_NE(whole_file(actual / "checkpoints/last/model.safetensors"), "");
  EXPECT_EQ(kept_snapshots(actual), kept_snapshots(expected));
  EXPECT_EQ(timeless_metrics(actual), timeless_metrics(expected));
  EXPECT_EQ(std::filesystem::read_symlink(actual / "checkpoints/best"),
            std::filesystem::read_symlink(expected / "checkpoints/best"));
}

}  // namespace kelvin
