#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>

#include "app/data_folder.h"
#include "app/format_flag.h"
#include "app/threads_flag.h"

namespace kelvin {

// The flags that every verb has, and that mean the same everywhere.  A verb that has no use for one
// of them takes it all the same: a script need not know which do.
class CommonFlags {
 public:
  void declare(CLI::App& command);

  // An Error if one of them is not what it must be, whether or not the verb will ask for it.
  void check() const;

  // Progress and remarks are not shown; results, warnings and errors are.
  bool is_quiet() const { return is_quiet_; }
  TableFormat format() const { return format_.format(); }
  std::filesystem::path data_folder() const { return data_folder_.folder(); }
  int64_t threads() const { return threads_.threads(); }
  bool has_threads() const { return threads_.is_given(); }

 private:
  bool is_quiet_ = false;
  FormatFlag format_;
  DataFolderFlag data_folder_;
  ThreadsFlag threads_;
};

}  // namespace kelvin
