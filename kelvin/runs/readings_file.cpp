#include "kelvin/runs/readings_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/json_fields.h"
#include "kelvin/core/seeds.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr auto kReadingsFile = "readings.jsonl";
constexpr auto kDefinitions = "definitions.json";
constexpr auto kMeanOver = "mean_over";  // key of a definition
constexpr size_t kMostOfAnId = 20;       // in a message

// Whether it is a mean of a detector's readings on several datasets, one of which `readings`
// replace.
bool is_mean_of_replaced(const Reading& mean, const Readings& readings) {
  const auto members = mean.definition.find(kMeanOver);
  if (mean.detector.empty() || members == mean.definition.end()) return false;
  return std::any_of(readings.begin(), readings.end(), [&](const Reading& reading) {
    return reading.detector == mean.detector && reading.name == mean.name &&
           std::find(members->begin(), members->end(), Definition(reading.ood)) != members->end();
  });
}

}  // namespace

Reading reading_of(const Json& json, const std::string& origin) {
  const JsonFields fields(json, origin);
  Reading reading{.name = fields.text("name"),
                  .value = fields.number_or_nan("value"),
                  .layer = fields.text_or_empty("layer"),
                  .split = fields.text_or_empty("split"),
                  .detector = fields.text_or_empty("detector"),
                  .ood = fields.text_or_empty("ood"),
                  .definition = Definition::object()};
  if (fields.has("index")) reading.index = fields.whole("index");
  if (fields.has("low") && fields.has("high")) {
    reading.interval = {.low = fields.number_or_nan("low"), .high = fields.number_or_nan("high")};
  }
  return reading;
}

std::string definition_id(const Definition& definition) {
  return fmt::format("{:016x}", derive_seed(0, definition.dump())).substr(0, 12);
}

std::string identity_of(const Reading& reading) {
  auto fields = fields_of(reading);
  for (const char* key : {"value", "low", "high"}) fields.erase(key);
  // A detector's definition also tells what it has found, which differs from fit to fit; there is
  // one file of its scores.
  if (!reading.detector.empty()) return fields.dump();
  return fields.dump() + definition_id(reading.definition);
}

void merge_readings(const fs::path& folder, const Readings& readings) {
  auto merged = load_readings(folder);
  Json definitions = Json::object();
  for (const auto& reading : merged) {
    definitions[definition_id(reading.definition)] = reading.definition;
  }
  std::erase_if(merged,
                [&](const Reading& reading) { return is_mean_of_replaced(reading, readings); });
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < merged.size(); ++i) places[identity_of(merged[i])] = i;
  for (const auto& reading : readings) {
    const auto [place, is_new] = places.emplace(identity_of(reading), merged.size());
    if (is_new) {
      merged.push_back(reading);
    } else {
      merged[place->second] = reading;
    }
  }

  Json used = Json::object();
  std::string lines;
  for (const auto& reading : merged) {
    const auto id = definition_id(reading.definition);
    used[id] = definitions[id] = reading.definition;
    auto line = fields_of(reading);
    line["definition"] = id;
    lines += line.dump() + "\n";
  }
  // At no moment does a reading refer to a definition that is not there: first old and new ones,
  // and those that nobody refers to any more are dropped last.
  write_file_atomically(folder / kDefinitions, definitions.dump(1) + "\n");
  write_file_atomically(folder / kReadingsFile, lines);
  if (used != definitions) write_file_atomically(folder / kDefinitions, used.dump(1) + "\n");
}

Readings load_readings(const fs::path& folder) {
  const auto path = folder / kReadingsFile;
  if (!fs::exists(path)) return {};
  const auto whole = load_json_object(folder / kDefinitions);
  const JsonFields definitions(whole, (folder / kDefinitions).string());
  std::istringstream lines(read_file(path));
  Readings readings;
  for (std::string line; std::getline(lines, line);) {
    const auto origin = path.string() + ": line " + std::to_string(readings.size() + 1);
    const auto json = parse_json_object(line, origin);
    const auto id = JsonFields(json, origin).text("definition");
    check(definitions.has(id), origin, ": definition: must be one of ", kDefinitions, ", has no '",
          id.substr(0, kMostOfAnId), "'");
    auto& reading = readings.emplace_back(reading_of(json, origin));
    reading.definition = definitions.object(id);
  }
  return readings;
}

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
