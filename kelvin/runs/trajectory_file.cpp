#include "kelvin/runs/trajectory_file.h"

#include "kelvin/core/check.h"
#include "kelvin/runs/readings_file.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

TrajectoryLine trajectory_line_of(const Json& fields) {
  TrajectoryLine line{.step = fields.at("step").get<int64_t>(),
                      .epoch = fields.at("epoch").get<double>()};
  // get_ref, because a loop over anything but an array would take it for one.
  for (const auto& value : fields.at("logits_singular_values").get_ref<const Json::array_t&>()) {
    line.logits_singular_values.push_back(number_or_nan(value));
  }
  for (const auto& reading : fields.at("readings").get_ref<const Json::array_t&>()) {
    line.readings.push_back(reading_of(reading));
  }
  return line;
}

}  // namespace

std::vector<TrajectoryLine> load_trajectory(const fs::path& folder) {
  const auto path = folder / "trajectory.jsonl";
  std::vector<TrajectoryLine> trajectory;
  try {
    for (const auto& fields : load_lines(path)) trajectory.push_back(trajectory_line_of(fields));
  } catch (const nlohmann::json::exception& error) {
    check(false, path.string(), ": line ", trajectory.size() + 1,
          ": not a line of a trajectory: ", error.what());
  }
  return trajectory;
}

}  // namespace kelvin
