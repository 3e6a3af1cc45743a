#include "app/data_folder.h"

#include <cstdlib>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
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
  const auto home = variable("HOME");
  check(!home.empty(), "--data-dir: required if neither $KELVIN_DATA nor $HOME is set");
  return std::filesystem::path(home) / ".cache" / "kelvin";
}

}  // namespace kelvin
