#include "app/cli/network_input.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "app/cli/config_paths.h"
#include "app/cli/human_text.h"
#include "app/cli/setting_words.h"
#include "kelvin/core/check.h"
#include "kelvin/experiment/tasks/recognise.h"
#include "kelvin/formats/torchscript_file.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {

namespace fs = std::filesystem;

void NetworkInput::declare(CLI::App& command) {
  declare(command,
          "a run folder; or a file of weights or of torch.jit.save, for which the flags tell the "
          "data",
          "RUN or WEIGHTS");
}

void NetworkInput::declare(CLI::App& command, const std::string& what,
                           const std::string& type_name) {
  declare_optional(command, what, type_name);
  command.get_option("INPUT")->required();
}

void NetworkInput::declare_optional(CLI::App& command, const std::string& what,
                                    const std::string& type_name) {
  declare_input(command, "INPUT", path_, what)->type_name(type_name);
  command.add_flag("--trust", is_trusted_, "run the code of a TorchScript file without asking");
  flags_.declare(command, use_, changeable_);
}

void NetworkInput::check_exists() const {
  check(fs::exists(path_), path_, ": no such run or file");
  check(!is_run() || kelvin::is_run(path_), path_, ": is not a run folder (no config.toml)");
}

Config NetworkInput::config(const fs::path& data_folder) const {
  auto config = flags_.config();
  if (!is_weights()) {
    for (const auto& [key, value] : config.values()) {
      const bool is_changeable =
          std::any_of(changeable_.begin(), changeable_.end(),
                      [&key = key](const auto& prefix) { return key.starts_with(prefix); });
      check(is_changeable, key, ": is for a file of weights; ", path_, " knows its own settings");
    }
    return config;
  }
  check(config.has("data.name"), path_, ": needs data.name to be measured (--dataset)");
  check(!config.has("init.pretrained"), "init.pretrained: is ", path_, " already");
  if (is_torchscript_file(path_)) {
    check(!config.has("model.name"), "model.name: is for a file of weights; ", path_,
          " has its own code");
    check_may_run();
    config.set("model.name", kTorchscriptModel);
    config.set("model.file", fs::absolute(path_).string());
  } else {
    // Whose code that would be nobody was asked.
    check(!config.has("model.name") || config.at("model.name") != kTorchscriptModel,
          "model.name: ", kTorchscriptModel, " is for a file of torch.jit.save; ", path_,
          " is none");
    config.set("init.pretrained", path_);
  }
  make_paths_absolute(config, data_folder);
  return config;
}

void NetworkInput::check_may_run() const {
  constexpr auto kWarning = ": a TorchScript file holds code, which is run";
  if (is_trusted_) return;
  const bool can_ask = isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0;
  check(can_ask, path_, kWarning, "; --trust says that it may be");
  print_for_people(path_ + kWarning + ". Do you trust it? [y/N] ");
  std::string answer;
  std::getline(std::cin, answer);
  check(answer == "y" || answer == "Y" || answer == "yes", path_, ": was not run");
}

Config NetworkInput::settings(const Config& config, const ComputeLibrary& library,
                              const RunContext& context) const {
  if (!is_weights()) return config;
  auto whole = config;
  if (!config.has("model.name")) {
    whole = library.run(RecogniseRequest{.weights = path_}, context);
    whole.merge(config);
  }
  return library.run(ResolveRequest{.config = whole});
}

}  // namespace kelvin
