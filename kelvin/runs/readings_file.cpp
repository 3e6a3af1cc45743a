#include "kelvin/runs/readings_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <sstream>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/seeds.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr auto kReadings = "readings.jsonl";
constexpr auto kDefinitions = "definitions.json";
constexpr auto kMeanOver = "mean_over";  // key of a definition

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

double number_or_nan(const Json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

Reading reading_of(const Json& fields) {
  Reading reading{.name = fields.at("name"),
                  .value = number_or_nan(fields.at("value")),
                  .layer = fields.value("layer", ""),
                  .split = fields.value("split", ""),
                  .detector = fields.value("detector", ""),
                  .ood = fields.value("ood", ""),
                  .definition = Definition::object()};
  if (fields.contains("index")) reading.index = fields["index"].get<int64_t>();
  if (fields.contains("low") && fields.contains("high")) {
    reading.interval = {.low = number_or_nan(fields["low"]), .high = number_or_nan(fields["high"])};
  }
  return reading;
}

std::string definition_id(const Definition& definition) {
  return fmt::format("{:016x}", named_seed(0, definition.dump())).substr(0, 12);
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
  write_file_atomically(folder / kReadings, lines);
  if (used != definitions) write_file_atomically(folder / kDefinitions, used.dump(1) + "\n");
}

Readings load_readings(const fs::path& folder) {
  if (!fs::exists(folder / kReadings)) return {};
  const auto path = folder / kReadings;
  const auto definitions =
      Json::parse(read_file(folder / kDefinitions), nullptr, /*allow_exceptions=*/false);
  check(definitions.is_object(), (folder / kDefinitions).string(), ": not a JSON object");
  Readings readings;
  int64_t number = 0;
  try {
    std::istringstream lines(read_file(path));
    for (std::string line; std::getline(lines, line);) {
      ++number;
      const auto fields = Json::parse(line);
      auto& reading = readings.emplace_back(reading_of(fields));
      reading.definition = definitions.at(fields.at("definition").get<std::string>());
    }
  } catch (const nlohmann::json::exception& error) {
    check(false, path.string(), ": line ", number, ": not a reading: ", error.what());
  }
  return readings;
}

}  // namespace kelvin
