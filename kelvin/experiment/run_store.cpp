#include "kelvin/experiment/run_store.h"

#include <unistd.h>

#include "kelvin/core/check.h"
#include "kelvin/core/npz_file.h"
#include "kelvin/experiment/curves_file.h"
#include "kelvin/runs/readings_file.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

// Whatever store_in_run() would have to read or replace.
void check_can_store(const fs::path& run) {
  load_readings(run);
  const auto curves = run / "curves.npz";
  if (fs::exists(curves)) read_npz(curves);
  const auto scores = run / "scores";
  if (!fs::exists(scores)) return;
  check(fs::is_directory(scores), scores.string(), ": is a file, must be a folder");
  check(::access(scores.c_str(), W_OK | X_OK) == 0, scores.string(),
        ": cannot be written: no right to write in it");
}

}  // namespace

void store_in_run(const fs::path& run, const Readings& readings, const NamedTensors& curves,
                  const std::vector<Scores>& scores) {
  const auto folder = RunFolder::open(run);
  folder.add_readings(readings);
  add_curves(run / "curves.npz", curves);
  for (const auto& each : scores) folder.write_scores(each);
}

RunLock lock_to_store(const fs::path& run) {
  try {
    auto lock = RunLock::take(run);
    check_can_store(run);
    return lock;
  } catch (const Error& error) {
    check(false, error.what(), "; --no-store leaves the run as it is");
    throw;
  }
}

}  // namespace kelvin
