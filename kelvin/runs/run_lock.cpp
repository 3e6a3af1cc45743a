#include "kelvin/runs/run_lock.h"

#include <string>
#include <utility>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

std::filesystem::path lock_of(const std::filesystem::path& run) { return run / "lock"; }

}  // namespace

std::optional<RunLock> RunLock::try_take(const std::filesystem::path& run) {
  auto lock = FileLock::try_take(lock_of(run));
  if (!lock) return std::nullopt;
  return RunLock(std::move(*lock));
}

RunLock RunLock::take(const std::filesystem::path& run) {
  auto lock = try_take(run);
  const auto holder = lock ? "" : holder_of_lock(lock_of(run));
  check(lock.has_value(), run.string(), ": another process ",
        holder.empty() ? "" : "(" + holder + ") ", "is at work in it");
  return std::move(*lock);
}

bool is_locked(const std::filesystem::path& run) { return is_file_locked(lock_of(run)); }

}  // namespace kelvin
