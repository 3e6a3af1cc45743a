#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

namespace kelvin {

// --data-dir: where datasets lie.
class DataFolderFlag {
 public:
  void declare(CLI::App& command);

  // The flag, else $KELVIN_DATA, else ~/.cache/kelvin.  It need not exist.
  std::filesystem::path folder() const;

 private:
  std::string text_;
};

}  // namespace kelvin
