#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/config_flags.h"
#include "kelvin/experiment/compute_api.h"

namespace kelvin {

// The trained network that a verb looks at: a run folder; a file of weights, for which flags tell
// the data and, unless its names and shapes do, the model; or a TorchScript file, for which flags
// tell the data.  Some verbs also take a dump of what a network did.
class NetworkInput {
 public:
  // Of a run only settings whose keys begin with one of `changeable` may be given.
  NetworkInput(ConfigUse use, std::vector<std::string> changeable)
      : use_(use), changeable_(std::move(changeable)) {}

  // A run or a file of weights.
  void declare(CLI::App& command);
  // `what` says in the help what else may be given.
  void declare(CLI::App& command, const std::string& what, const std::string& type_name);
  // It may be left out, because other flags tell what to look at.
  void declare_optional(CLI::App& command, const std::string& what, const std::string& type_name);

  bool is_given() const { return !path_.empty(); }
  // What the flags say, of an input that was left out.
  Config config_without_network() const { return flags_.config(); }

  // An Error if there is nothing of the kind.
  void check_exists() const;
  const std::string& path() const { return path_; }
  bool is_run() const { return std::filesystem::is_directory(path_); }
  // Weights alone, or with code.
  bool is_weights() const { return !is_run() && !path_.ends_with(".npz"); }

  // What the flags say.  Of weights, the data must be given.  A TorchScript file is code: an Error
  // unless it may be run.
  Config config(const std::filesystem::path& data_folder) const;

  // What a request for this network says of `config`: of weights everything, with nothing unset; of
  // a run or a dump what replaces its own settings.  Who looks on is told of a model that was
  // recognised.
  Config settings(const Config& config, const ComputeLibrary& library,
                  const RunContext& context) const;

 private:
  void check_may_run() const;

  ConfigUse use_;
  std::vector<std::string> changeable_;
  std::string path_;
  bool is_trusted_ = false;
  ConfigFlags flags_;
};

}  // namespace kelvin
