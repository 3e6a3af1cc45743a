#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "app/cli/data_folder.h"
#include "kelvin/report/tables/table.h"

namespace kelvin {

constexpr int kSuccess = 0;
constexpr int kUserError = 2;       // the user can fix it
constexpr int kInternalError = 70;  // a mistake of ours

// Texts given on the command line as what they mean; an Error names the flag.

int64_t whole_number_of(const std::string& flag, const std::string& text);

// Also "nan" and "inf": whether they make sense is for the setting to say.
double number_of(const std::string& flag, const std::string& text);

// "a,b" as two names; an empty name is an Error.
std::vector<std::string> names_of(const std::string& flag, const std::string& text);

// -o: how results are printed.
class FormatFlag {
 public:
  void declare(CLI::App& command) {
    command.add_option("-o,--format", name_, "how to print: text, md, csv, json or jsonl")
        ->type_name("FORMAT of text|md|csv|json|jsonl");
  }

  TableFormat format() const { return table_format(name_); }

 private:
  std::string name_ = "text";
};

// The flag --no-store of verbs that add what they found to the run they looked at.
class StoreFlag {
 public:
  void declare(CLI::App& command) {
    command.add_flag("--no-store", is_refused_,
                     "leave the run as it is: for one that is read-only or archived");
  }
  bool is_refused() const { return is_refused_; }

 private:
  bool is_refused_ = false;
};

// What --threads means to most verbs.
inline constexpr auto kThreadsHelp =
    "threads to compute with (default: $OMP_NUM_THREADS, else all cores)";

// --threads: how many threads compute.
class ThreadsFlag {
 public:
  void declare(CLI::App& command, const std::string& help) {
    command.add_option("--threads", text_, help)->type_name("N");
  }

  int64_t threads() const;
  bool is_given() const { return !text_.empty(); }

 private:
  std::string text_;
};

// The flags that every verb has.  A verb that has no use for one of them takes it all the same: a
// script need not know which do.
class CommonFlags {
 public:
  void declare(CLI::App& command, const std::string& threads_help);

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
