#include "app/cli/data_folder.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Also where nobody set $HOME, as in a cron job.
std::filesystem::path home() {
  if (auto folder = variable("HOME"); !folder.empty()) return folder;
  const auto* user = ::getpwuid(::getuid());
  check(user != nullptr, "--data-dir: required if neither $KELVIN_DATA nor $HOME is set");
  return user->pw_dir;
}

}  // namespace

void DataFolderFlag::declare(CLI::App& command) {
  command
      .add_option("--data-dir", text_,
                  "where datasets lie (default: $KELVIN_DATA, else ~/.cache/kelvin)")
      ->type_name("DIR");
}

std::filesystem::path DataFolderFlag::folder() const {
  if (!text_.empty()) return text_;
  if (const auto folder = variable("KELVIN_DATA"); !folder.empty()) return folder;
  return home() / ".cache" / "kelvin";
}

}  // namespace kelvin
