#include "kelvin/runs/trajectory_file.h"

#include <string>

#include "kelvin/core/json_fields.h"
#include "kelvin/runs/readings_file.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr auto kSpectrum = "logits_singular_values";
constexpr auto kReadings = "readings";

TrajectoryLine trajectory_line_of(const Json& json, const std::string& origin) {
  const JsonFields fields(json, origin);
  TrajectoryLine line{.step = fields.whole("step"), .epoch = fields.number("epoch")};
  for (const auto& value : fields.list(kSpectrum)) {
    line.logits_singular_values.push_back(number_or_nan(value, fields.place_of(kSpectrum)));
  }
  for (const auto& reading : fields.list(kReadings)) {
    line.readings.push_back(reading_of(reading, fields.place_of(kReadings)));
  }
  return line;
}

fs::path file_in(const fs::path& folder) { return folder / "trajectory.jsonl"; }

std::vector<TrajectoryLine> trajectory_of(const std::vector<Json>& lines, const fs::path& path) {
  std::vector<TrajectoryLine> trajectory;
  trajectory.reserve(lines.size());
  for (const auto& json : lines) {
    trajectory.push_back(trajectory_line_of(
        json, path.string() + ": line " + std::to_string(trajectory.size() + 1)));
  }
  return trajectory;
}

}  // namespace

std::vector<TrajectoryLine> load_trajectory(const fs::path& folder) {
  return trajectory_of(load_lines(file_in(folder)), file_in(folder));
}

std::vector<TrajectoryLine> load_trajectory(const fs::path& folder, int64_t size) {
  return trajectory_of(load_lines(file_in(folder), size), file_in(folder));
}

}  // namespace kelvin
