#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/cli/common_flags.h"
#include "kelvin/core/reading.h"
#include "kelvin/report/studies/study.h"

namespace kelvin {

// How verbs that compute a study tell of it: on stdout and, if wanted, as a page and its figures.
class StudyOutput {
 public:
  void declare(CLI::App& command);

  bool has_files() const { return !page_.empty() || !svg_folder_.empty(); }

  // Of files that must not be overwritten; before anything is computed.
  void check_paths() const;

  // For people the study, for programs the readings.
  void show(const Readings& readings, const std::function<Study(const Readings&)>& study_of,
            const CommonFlags& flags) const;

 private:
  void write_figures(const Study& study) const;

  bool with_definitions_ = false;
  std::string page_;
  std::string svg_folder_;
};

// "0.1,1,10" as numbers, "16,32" as whole ones; an Error names the flag.
std::vector<double> numbers_of(const std::string& flag, const std::string& text);
std::vector<int64_t> whole_numbers_of(const std::string& flag, const std::string& text);

}  // namespace kelvin
