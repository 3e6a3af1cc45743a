#include <fmt/format.h>

#include "app/cli/common_flags.h"
#include "app/cli/verb.h"
#include "app/completion/candidates.h"
#include "app/completion/scripts.h"
#include "kelvin/core/check.h"

namespace kelvin {
namespace {

const char* name_of(Paths paths) {
  switch (paths) {
    case Paths::none:
      return "";
    case Paths::folders:
      return "folders";
    case Paths::files:
      return "files";
  }
  return "";
}

class Completion : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    command.add_option("SHELL", shell_, "bash, zsh or fish")
        ->type_name("SHELL of bash|zsh|fish")
        ->required();
    command
        .add_option("WORD", words_,
                    "after --, what stands behind 'kelvin' so far: prints what the last word may "
                    "become, as the script asks at every TAB")
        ->type_name("");
  }

  int run() override {
    const auto script = completion_scripts().find(shell_);
    check(script != completion_scripts().end(), "SHELL: must be bash, zsh or fish, got '", shell_,
          "'");
    if (words_.empty()) {
      fmt::print("{}", script->second);
      return kSuccess;
    }
    const auto found = candidates(words_);
    fmt::print("{}\n", name_of(found.paths));
    for (const auto& [word, meaning] : found.words) fmt::print("{}\t{}\n", word, meaning);
    return kSuccess;
  }

 private:
  std::string shell_;
  std::vector<std::string> words_;
};

const bool completion_registered =
    verbs().add("completion", {
                                  .summary = "A script that lets bash, zsh or fish complete words",
                                  .make = [] { return std::make_unique<Completion>(); },
                              });

}  // namespace
}  // namespace kelvin
