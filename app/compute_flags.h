#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <string>

#include "app/data_folder.h"
#include "app/threads_flag.h"
#include "kelvin/experiment/compute_api.h"

namespace kelvin {

// The flags of verbs that look at a network and write what they found: --quiet, --data-dir,
// --threads.
class ComputeFlags {
 public:
  void declare(CLI::App& command);

  std::filesystem::path data_folder() const { return data_folder_.folder(); }

  // Loads the library and does the work, with progress on stderr.  The process's exit code: an
  // interrupt ends the work and says so.  `on_failure` is called, once the progress is gone, before
  // whatever ended the work is told.
  int run(
      const std::string& verb,
      const std::function<void(const ComputeApi&, const RunContext&)>& work,
      const std::function<void()>& on_failure = [] {}) const;

 private:
  bool is_quiet_ = false;
  DataFolderFlag data_folder_;
  ThreadsFlag threads_;
};

}  // namespace kelvin
