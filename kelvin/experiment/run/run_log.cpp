#include "kelvin/experiment/run/run_log.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string_view>
#include <system_error>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/json_fields.h"
#include "kelvin/experiment/run/run_store.h"
#include "kelvin/formats/npz_file.h"
#include "kelvin/formats/tensorboard_file.h"
#include "kelvin/runs/readings_file.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr auto kMetrics = "metrics.jsonl";
constexpr auto kTrajectory = "trajectory.jsonl";
constexpr auto kNotes = "notes.jsonl";
constexpr auto kDefinitions = "trajectory_definitions.json";
constexpr std::array kFiles = {kMetrics, kTrajectory, kNotes};
constexpr auto kCurves = "trajectory";  // a folder
constexpr std::string_view kStep = "step-";

std::string curves_name(int64_t step) { return std::string(kStep) + std::to_string(step) + ".npz"; }

Array array_of(const std::vector<double>& values, std::vector<int64_t> shape) {
  return {.dtype = "f8",
          .shape = std::move(shape),
          .bytes = {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)}};
}

Json load_definitions(const fs::path& path) {
  return fs::exists(path) ? load_json_object(path) : Json::object();
}

int64_t size_in(const std::map<std::string, int64_t>& sizes, const char* name) {
  const auto found = sizes.find(name);
  return found == sizes.end() ? 0 : found->second;
}

// What a process that was killed left of looks that will be taken again.
std::vector<fs::path> curves_without_line(const fs::path& run,
                                          const std::vector<TrajectoryLine>& lines) {
  const auto folder = run / kCurves;
  std::vector<fs::path> gone;
  if (!fs::is_directory(folder)) return gone;
  std::set<std::string> kept;
  for (const auto& line : lines) kept.insert(curves_name(line.step));
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with(kStep) && !kept.contains(name)) gone.push_back(entry.path());
  }
  return gone;
}

void remove_curves_without_line(const fs::path& run) {
  for (const auto& path : curves_without_line(run, load_trajectory(run))) {
    std::error_code failure;
    fs::remove(path, failure);
    check(!failure, path.string(), ": cannot be removed: ", failure.message());
  }
}

// A new file whatever the clock says: a run may go on within the second, in the same process.
TensorboardFile new_events(const fs::path& run, const RunContext& context, int64_t first_step) {
  const auto seconds = context.time_of_day();
  auto suffix = context.process_name;
  for (int again = 2; TensorboardFile::exists(run, seconds, suffix); ++again) {
    suffix = context.process_name + "." + std::to_string(again);
  }
  return TensorboardFile(run, seconds, suffix, first_step);
}

}  // namespace

struct RunLog::Events {
  TensorboardFile file;
};

RunLog::RunLog(const RunFolder& folder, const RunContext& context, int64_t first_step)
    : folder_(folder),
      context_(context),
      events_(new Events{new_events(folder.path(), context, first_step)}),
      definitions_(load_definitions(folder.path() / kDefinitions)) {}

RunLog::~RunLog() = default;

void RunLog::add_metrics(const Json& line) const {
  folder_.append_metrics(line);
  std::map<std::string, double> values;
  for (const auto& [name, value] : line.items()) {
    if (name != "step" && value.is_number()) values[name] = value.get<double>();
  }
  add_scalars(line.at("step"), values);
}

void RunLog::add_trajectory(int64_t step, double epoch, const Readings& readings) const {
  Json line = {{"step", step}, {"epoch", epoch}};
  auto& spectrum = line["logits_singular_values"] = Json::array();
  auto& others = line["readings"] = Json::array();
  std::set<std::string> seen;
  const auto known = definitions_.size();
  for (const auto& reading : readings) {
    if (reading.name == "singular_value" && reading.layer.empty()) {
      spectrum.push_back(reading.value);
      continue;
    }
    // The first of a name is by the default definition; lines have no room for others.
    auto place = reading;
    place.definition = Definition::object();
    if (!seen.insert(identity_of(place)).second) continue;
    auto fields = fields_of(reading);
    const auto id = definition_id(reading.definition);
    fields["definition"] = id;
    if (!definitions_.contains(id)) definitions_[id] = reading.definition;
    others.push_back(std::move(fields));
  }
  // First: at no moment does a line refer to a definition that is not there.
  if (definitions_.size() > known) {
    write_file_atomically(folder_.path() / kDefinitions, definitions_.dump(1) + "\n");
  }
  append_line(folder_.path() / kTrajectory, line.dump());
}

void RunLog::add_curves(int64_t step, const NamedTensors& curves) const {
  if (curves.empty()) return;
  const auto folder = folder_.path() / kCurves;
  std::error_code failure;
  fs::create_directories(folder, failure);
  check(!failure, folder.string(), ": cannot be made: ", failure.message());
  kelvin::write_curves(folder / curves_name(step), curves);
}

void RunLog::add_note(int64_t step, const std::string& note) const {
  append_line(folder_.path() / kNotes, Json({{"step", step}, {"note", note}}).dump());
  context_.warn(note);
}

void RunLog::add_scalars(int64_t step, const std::map<std::string, double>& values) const {
  events_->file.add(step, context_.time_of_day(), values);
}

std::vector<Json> RunLog::metrics() const { return load_lines(folder_.path() / kMetrics); }

void RunLog::write_curves() const {
  std::vector<double> steps;
  std::vector<double> epochs;
  std::vector<double> spectra;
  const auto trajectory = load_trajectory(folder_.path());
  size_t width = 0;
  for (const auto& line : trajectory) width = std::max(width, line.logits_singular_values.size());
  for (const auto& line : trajectory) {
    steps.push_back(static_cast<double>(line.step));
    epochs.push_back(line.epoch);
    const auto& values = line.logits_singular_values;
    spectra.insert(spectra.end(), values.begin(), values.end());
    // A run that went on with other samples may have more of them than before.
    spectra.insert(spectra.end(), width - values.size(), std::numeric_limits<double>::quiet_NaN());
  }
  const auto lines = static_cast<int64_t>(steps.size());
  write_npz(folder_.path() / "curves.npz",
            {{"steps", array_of(steps, {lines})},
             {"epochs", array_of(epochs, {lines})},
             {"logits_singular_values", array_of(spectra, {lines, static_cast<int64_t>(width)})}});
}

std::map<std::string, int64_t> RunLog::sizes() const {
  std::map<std::string, int64_t> sizes;
  for (const char* name : kFiles) {
    const auto path = folder_.path() / name;
    sizes[name] = file_size_or_zero(path);
    if (sizes[name] > 0) sync_file(path);
  }
  const auto curves = folder_.path() / kCurves;
  if (fs::exists(curves)) sync_file(curves);
  return sizes;
}

std::vector<Json> RunLog::lines_to_keep(const fs::path& run,
                                        const std::map<std::string, int64_t>& sizes) {
  auto metrics = load_lines(run / kMetrics, size_in(sizes, kMetrics));
  load_lines(run / kNotes, size_in(sizes, kNotes));
  const auto trajectory = load_trajectory(run, size_in(sizes, kTrajectory));
  load_definitions(run / kDefinitions);
  for (const char* name : kFiles) file_size_or_zero(run / name);  // an Error of a folder
  const auto curves = run / kCurves;
  check(!fs::exists(curves) || fs::is_directory(curves), curves.string(),
        ": is a file, must be a folder");
  for (const auto& path : curves_without_line(run, trajectory)) {
    check(!fs::is_directory(path), path.string(), ": is a folder, must be a file");
  }
  return metrics;
}

void RunLog::cut_back(const fs::path& run, const std::map<std::string, int64_t>& sizes) {
  for (const char* name : kFiles) {
    const auto size = size_in(sizes, name);
    const auto path = run / name;
    if (size > 0) {
      truncate_file(path, size);
    } else if (fs::exists(path)) {
      truncate_file(path, 0);
    }
  }
  remove_curves_without_line(run);
}

}  // namespace kelvin
