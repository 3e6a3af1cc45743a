#include "kelvin/runs/kept_readings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/json_fields.h"
#include "kelvin/core/seeds.h"
#include "kelvin/core/text.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr auto kFailure = "failure";
constexpr size_t kMostMetrics = 64;
constexpr size_t kMostTrajectoryLines = 16;
constexpr size_t kMostSingularValues = 10;  // of the logits, at each moment of training
constexpr int64_t kMostOfASpectrum = 20;    // singular values at the end

bool lists(const Config& config, const std::string& key, const std::string& name) {
  if (!config.has(key) || !config.at(key).is_array()) return false;
  const auto& names = config.at(key);
  return std::find(names.begin(), names.end(), Value(name)) != names.end();
}

bool changes_results(const Config& config, const std::string& key) {
  constexpr std::array kOnlyOnDisk = {"data.cache_images", "train.checkpoint_steps",
                                      "train.keep_checkpoints"};
  if (std::find(kOnlyOnDisk.begin(), kOnlyOnDisk.end(), key) != kOnlyOnDisk.end()) return false;
  const auto parts = split(key, '.');
  if (parts.size() != 3) return true;
  if (parts[0] == "detector") return lists(config, "measure.detectors", parts[1]);
  if (parts[0] == "measure") {
    return lists(config, "measure.names", parts[1]) || lists(config, "measure.during", parts[1]);
  }
  return true;
}

// Six digits are more than any figure shows; whole numbers and texts stay as they are.
Json rounded(const Json& value) {
  if (!value.is_number_float()) return value;
  const auto number = value.get<double>();
  if (!std::isfinite(number)) return value;
  return std::strtod(fmt::format("{:.6g}", number).c_str(), nullptr);
}

// Of a run that was looked at more often, whole epochs first, then evenly in time.
std::vector<Json> thinned_metrics(const std::vector<Json>& metrics) {
  std::vector<Json> lines = metrics;
  if (lines.size() > kMostMetrics) {
    std::erase_if(lines, [](const Json& line) {
      const auto epoch = line.value("epoch", 0.0);
      return epoch != std::floor(epoch);
    });
  }
  const auto stride = (lines.size() + kMostMetrics - 1) / kMostMetrics;
  std::vector<Json> kept;
  for (size_t i = 0; i < lines.size(); ++i) {
    // The last line always counts: it is how the run ended.
    if (stride <= 1 || i % stride == 0 || i + 1 == lines.size()) kept.push_back(lines[i]);
  }
  return kept;
}

// Lines of metrics as a list for each key, which is a third of their size; null where a line has
// no such key.
std::vector<std::string> columns_of(const std::vector<Json>& lines) {
  Json columns;
  for (size_t i = 0; i < lines.size(); ++i) {
    for (const auto& [key, value] : lines[i].items()) {
      if (key == "seconds" || key == "images_per_second") continue;
      if (!columns.contains(key)) columns[key] = std::vector<Json>(lines.size());
      columns[key][i] = rounded(value);
    }
  }
  std::vector<std::string> texts;
  for (const auto& [key, values] : columns.items()) {
    texts.push_back(Json(key).dump() + ": " + values.dump());
  }
  return texts;
}

// Readings over training that figures draw; ranks and norms of the logits are in the metrics.
bool is_drawn(const Reading& reading) {
  constexpr std::array kDrawn = {"alignment",       "norm_alignment",  "top_singular_share",
                                 "gradient_rank",   "activation_rank", "gradient_rank_violations",
                                 "covariance_rank", "orthodev"};
  return !reading.index && std::find(kDrawn.begin(), kDrawn.end(), reading.name) != kDrawn.end();
}

// The lines that are kept: evenly spaced, the first and the last among them.
std::set<size_t> kept_places(size_t lines) {
  std::set<size_t> places;
  for (size_t i = 0; i < kMostTrajectoryLines && lines > 0; ++i) {
    places.insert(i * (lines - 1) / (kMostTrajectoryLines - 1));
  }
  return places;
}

// Step, epoch and singular values of each line, then a list of values for each reading.
std::vector<std::string> trajectory_texts(const std::vector<TrajectoryLine>& lines) {
  const auto places = kept_places(lines.size());
  auto moments = Json::array();
  std::map<std::string, Json> series;  // by name and layer
  std::vector<std::string> order;
  for (const auto place : places) {
    const auto& line = lines[place];
    auto values = Json::array();
    for (const double value : line.logits_singular_values) {
      if (values.size() < kMostSingularValues) values.push_back(rounded(value));
    }
    std::set<std::string> seen;  // the first of a name and layer is the default
    for (const auto& reading : line.readings) {
      const auto key = reading.name + "@" + reading.layer + "@" + reading.ood;
      if (!is_drawn(reading) || !seen.insert(key).second) continue;
      if (!series.contains(key)) {
        order.push_back(key);
        auto fields = fields_of(reading);
        fields.erase("value");
        fields["values"] = std::vector<Json>(places.size());
        series[key] = std::move(fields);
      }
      series[key]["values"][moments.size()] = rounded(reading.value);
    }
    moments.push_back(
        {{"step", line.step}, {"epoch", rounded(line.epoch)}, {"logits_singular_values", values}});
  }
  std::vector<std::string> texts = {"\"moments\": " + moments.dump()};
  auto readings = Json::array();
  for (const auto& key : order) readings.push_back(series[key]);
  texts.push_back("\"readings\": " + readings.dump());
  return texts;
}

// Curves of every layer would be most of the file, and the tail of a spectrum tells little.
bool is_kept(const Reading& reading) {
  if (!reading.index) return true;
  if (!reading.layer.empty()) return false;
  return !reading.name.ends_with("singular_value") || *reading.index < kMostOfASpectrum;
}

// `to` as a merge patch (RFC 7386) of `from`, both objects.
Definition patch_of(const Definition& from, const Definition& to) {
  auto patch = Definition::object();
  for (const auto& [key, value] : from.items()) {
    if (!to.contains(key)) patch[key] = nullptr;
  }
  for (const auto& [key, value] : to.items()) {
    const auto found = from.find(key);
    if (found == from.end() || *found != value) patch[key] = value;
  }
  return patch;
}

// Definitions by id, each once.  Those of one reading differ in little: [ID, PATCH] is the
// definition ID with a merge patch.
class DefinitionList {
 public:
  std::string add(const Reading& reading) {
    const auto id = definition_id(reading.definition);
    auto& last = last_of_name_[reading.name];
    if (!known_.contains(id)) lines_.emplace_back(id, shortest(reading.definition, last));
    known_[id] = reading.definition;
    last = id;
    return id;
  }

  const std::vector<std::pair<std::string, std::string>>& lines() const { return lines_; }

 private:
  std::string shortest(const Definition& definition, const std::string& like) {
    auto text = definition.dump();
    for (const auto& base : {like, lines_.empty() ? std::string() : lines_.back().first}) {
      if (base.empty()) continue;
      const auto patch = patch_of(known_.at(base), definition);
      // Nested objects would be merged rather than replaced.
      auto whole = known_.at(base);
      whole.merge_patch(patch);
      if (whole != definition) continue;
      const auto shorter = Definition::array({base, patch}).dump();
      if (shorter.size() < text.size()) text = shorter;
    }
    return text;
  }

  std::map<std::string, Definition> known_;
  std::map<std::string, std::string> last_of_name_;
  std::vector<std::pair<std::string, std::string>> lines_;
};

Json head_of(const Run& run, const std::string& command) {
  Json head;
  head["format"] = "kelvin readings 1";
  for (const char* key : {"version", "commit"}) head[key] = run.metadata.value(key, Json());
  head["command"] = command;
  head["started"] = run.metadata.value("started", Json());
  const auto seconds = run.metrics.empty() ? Json() : run.metrics.back().value("seconds", Json());
  head["training_seconds"] = seconds.is_number() ? Json(std::round(seconds.get<double>())) : Json();
  for (const char* key : {"versions", "machine", "data_md5"}) {
    head[key] = run.metadata.value(key, Json::object());
  }
  if (run.status == RunStatus::failed) head[kFailure] = run.metadata.value(kFailure, "failed");
  head["config"] = config_record(run.config);
  return head;
}

std::string list_text(const std::vector<std::string>& lines, char open, char close) {
  std::string text(1, open);
  text += "\n";
  for (size_t i = 0; i < lines.size(); ++i) {
    text += "  " + lines[i] + (i + 1 < lines.size() ? ",\n" : "\n");
  }
  return text + " " + close;
}

std::map<std::string, Definition> definitions_of(const JsonFields& file) {
  std::map<std::string, Definition> definitions;
  for (const auto& [id, value] : file.object("definitions").items()) {
    const auto place = file.place_of("definitions") + "." + id;
    if (value.is_object()) {
      definitions[id] = Definition::parse(value.dump());
      continue;
    }
    const bool is_patch = value.is_array() && value.size() == 2 && value[0].is_string() &&
                          value[1].is_object() && definitions.contains(value[0].get<std::string>());
    check(is_patch, place, ": must be a definition or a patch of one above it");
    auto definition = definitions.at(value[0].get<std::string>());
    definition.merge_patch(Definition::parse(value[1].dump()));
    definitions[id] = std::move(definition);
  }
  return definitions;
}

Readings readings_of(const JsonFields& file) {
  const auto definitions = definitions_of(file);
  Readings readings;
  for (const auto& fields : file.list("readings")) {
    const auto origin = file.place_of("readings") + "[" + std::to_string(readings.size()) + "]";
    auto reading = reading_of(fields, origin);
    const auto id = JsonFields(fields, origin).text("definition");
    check(definitions.contains(id), origin, ": definition: must be one of the file's, got '", id,
          "'");
    reading.definition = definitions.at(id);
    readings.push_back(std::move(reading));
  }
  return readings;
}

std::vector<Json> metrics_of(const JsonFields& file) {
  std::vector<Json> lines;
  for (const auto& [key, values] : file.object("metrics").items()) {
    const auto place = file.place_of("metrics") + "." + key;
    check(values.is_array() && (lines.empty() || lines.size() == values.size()), place,
          ": must be a list as long as the others");
    lines.resize(values.size(), Json::object());
    for (size_t i = 0; i < values.size(); ++i) {
      if (!values[i].is_null()) lines[i][key] = values[i];
    }
  }
  return lines;
}

std::vector<TrajectoryLine> kept_trajectory_of(const JsonFields& file) {
  const JsonFields trajectory(file.object("trajectory"), file.place_of("trajectory"));
  std::vector<TrajectoryLine> lines;
  const auto place = trajectory.place_of("moments");
  for (const auto& moment : trajectory.list("moments")) {
    const JsonFields fields(moment, place);
    TrajectoryLine line{.step = fields.whole("step"), .epoch = fields.number("epoch")};
    for (const auto& value : fields.list("logits_singular_values")) {
      line.logits_singular_values.push_back(number_or_nan(value, place));
    }
    lines.push_back(std::move(line));
  }
  const auto origin = trajectory.place_of("readings");
  for (const auto& series : trajectory.list("readings")) {
    const auto& values = JsonFields(series, origin).list("values");
    check(values.size() == lines.size(), origin, ": must have ", lines.size(), " values, has ",
          values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].is_null()) continue;
      auto fields = series;
      fields.erase("values");
      fields["value"] = values[i];
      lines[i].readings.push_back(reading_of(fields, origin));
    }
  }
  return lines;
}

Config config_of(const JsonFields& file) {
  Config config;
  for (const auto& [key, value] : file.object("config").items()) {
    config.set(key, Value::parse(value.dump()));
  }
  return config;
}

}  // namespace

std::string config_hash(const Config& resolved) {
  std::string text;
  for (const auto& [key, value] : resolved.values()) {
    if (changes_results(resolved, key)) text += key + "=" + value.dump() + "\n";
  }
  return fmt::format("{:016x}", derive_seed(0, text));
}

std::string kept_text(const Run& ended, const std::string& command) {
  check(ended.status == RunStatus::finished || ended.status == RunStatus::failed,
        ended.path.string(), ": must be finished to be kept, is ", name_of(ended.status));
  DefinitionList definitions;
  std::vector<std::string> readings;
  for (const auto& reading : ended.readings) {
    if (!is_kept(reading)) continue;
    auto fields = fields_of(reading);
    for (const char* key : {"low", "high"}) {
      if (fields.contains(key)) fields[key] = rounded(fields[key]);
    }
    fields["definition"] = definitions.add(reading);
    readings.push_back(fields.dump());
  }
  std::vector<std::string> definition_lines;
  for (const auto& [id, text] : definitions.lines()) {
    definition_lines.push_back("\"" + id + "\": " + text);
  }
  auto text = head_of(ended, command).dump(1, ' ', false, Json::error_handler_t::replace);
  text.resize(text.rfind("\n}"));
  text += ",\n \"definitions\": " + list_text(definition_lines, '{', '}');
  text += ",\n \"readings\": " + list_text(readings, '[', ']');
  const auto metrics = columns_of(thinned_metrics(ended.metrics));
  text += ",\n \"metrics\": " + list_text(metrics, '{', '}');
  text += ",\n \"trajectory\": " + list_text(trajectory_texts(ended.trajectory), '{', '}');
  return text + "\n}\n";
}

fs::path keep_readings(const fs::path& folder, const Run& ended, const std::string& command) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  check(!failure, folder.string(), ": cannot be made: ", failure.message());
  const auto path = folder / (config_hash(ended.config) + ".json");
  write_file_atomically(path, kept_text(ended, command));
  return path;
}

Run load_kept(const fs::path& path) {
  const auto document = load_json_object(path);
  const JsonFields file(document, path.string());
  const bool has_failed = file.has(kFailure) && !file.text(kFailure).empty();
  Run run{.path = path,
          .config = config_of(file),
          .metadata = Json::object(),
          .metrics = metrics_of(file),
          .trajectory = kept_trajectory_of(file),
          .readings = readings_of(file),
          .scores = {},
          .status = has_failed ? RunStatus::failed : RunStatus::finished};
  for (const auto& [key, value] : document.items()) {
    const bool is_list =
        key == "definitions" || key == "readings" || key == "metrics" || key == "trajectory";
    if (!is_list) run.metadata[key] = value;
  }
  return run;
}

KeptReadings::KeptReadings(fs::path folder) : folder_(std::move(folder)) {}

std::optional<fs::path> KeptReadings::find(const Config& resolved) const {
  if (folder_.empty() || !fs::is_directory(folder_)) return std::nullopt;
  const auto hash = config_hash(resolved);
  const auto named = folder_ / (hash + ".json");
  if (fs::is_regular_file(named)) return named;
  if (!resolve_) return std::nullopt;
  if (!resolved_) {
    resolved_.emplace();
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() != ".json") continue;
      const auto document = load_json_object(entry.path());
      const auto config = config_of(JsonFields(document, entry.path().string()));
      try {
        resolved_->emplace(config_hash(resolve_(config)), entry.path());
      } catch (const Error&) {  // of a version with other settings
      }
    }
  }
  const auto found = resolved_->find(hash);
  return found == resolved_->end() ? std::nullopt : std::optional(found->second);
}

}  // namespace kelvin
