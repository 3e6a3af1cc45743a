#include "app/cli/recipe_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "kelvin/runs/run_folder.h"

namespace kelvin {
namespace {

// The last complete line of a file that may be growing; empty if there is none.
std::string last_whole_line_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  constexpr std::streamoff kTail = 8192;
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(size - kTail, 0));
  std::string tail(std::istreambuf_iterator<char>(file), {});
  tail.resize(tail.rfind('\n') == std::string::npos ? 0 : tail.rfind('\n'));
  const auto newline = tail.rfind('\n');
  return newline == std::string::npos ? tail : tail.substr(newline + 1);
}

}  // namespace

void RecipeProgress::end(const std::string& name) {
  runs_[name].has_ended = true;
  runs_[name].epochs_done = runs_[name].epochs;
}

Activity RecipeProgress::look(const std::string& label) {
  const auto now = Clock::now();
  if (now - looked_ > std::chrono::milliseconds(500)) {
    looked_ = now;
    for (auto& [name, run] : runs_) update(name, run);
  }
  double done = 0;
  double epochs = 0;
  int64_t ended = 0;
  for (const auto& [name, run] : runs_) {
    // After the last epoch a run still has to be measured.
    const double share = run.epochs > 0 ? std::min(run.epochs_done / run.epochs, 0.97) : 0;
    done += run.has_ended ? 1 : share;
    epochs += run.epochs_done;
    ended += run.has_ended ? 1 : 0;
  }
  const double seconds = std::chrono::duration<double>(now - started_).count();
  return {.label = label,
          .done = done,
          .total = static_cast<double>(runs_.size()),
          .rate = fmt::format("{}/{} runs", ended, runs_.size()) +
                  (epochs > 0 ? fmt::format(", {:.2g} epochs/s", epochs / seconds) : "")};
}

void RecipeProgress::update(const std::string& name, State& run) const {
  if (run.has_ended || !is_run(root_ / name)) return;
  if (run.epochs == 0) {
    const auto config = Config::load(root_ / name / "config.toml");
    if (config.has("train.epochs")) run.epochs = config.at("train.epochs").get<double>();
  }
  const auto line = nlohmann::json::parse(last_whole_line_of(root_ / name / "metrics.jsonl"),
                                          nullptr, /*allow_exceptions=*/false);
  if (line.is_object() && line.contains("epoch") && line["epoch"].is_number()) {
    run.epochs_done = line["epoch"].get<double>();
  }
}

}  // namespace kelvin
