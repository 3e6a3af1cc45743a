#include "kelvin/experiment/tasks/theory_prop32.h"

#include <filesystem>

#include "app/cli/common_flags.h"
#include "app/cli/compute.h"
#include "app/cli/setting_words.h"
#include "app/cli/study_output.h"
#include "app/verbs/theory.h"
#include "kelvin/core/check.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {
namespace {

class TheoryProp32 : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    declare_input(command, "RUN", run_,
                  "a trained network, whose rank and training images are looked at; without it the "
                  "construction");
    command.add_option("--classes", classes_, "of the construction (default: 10,100,1000)")
        ->type_name("A,B");
    command
        .add_option("--probabilities", probabilities_,
                    "of the true class in it (default: 0.5,0.9,0.99)")
        ->type_name("X,Y");
    output_.declare(command);
  }

  int run() override {
    output_.check_paths();
    RankTwoRequest request{.classes = whole_numbers_of("--classes", classes_),
                           .probabilities = numbers_of("--probabilities", probabilities_)};
    if (!run_.empty()) {
      check(is_run(run_), run_, ": is not a run folder (no config.toml)");
      request.run = run_;
    }
    Readings readings;
    const auto code = compute("theory prop32", common(),
                              [&](const ComputeLibrary& library, const RunContext& context) {
                                readings = library.run(request, context);
                              });
    if (code == kSuccess) output_.show(readings, prop32_study, common());
    return code;
  }

 private:
  std::string run_;
  std::string classes_ = "10,100,1000";
  std::string probabilities_ = "0.5,0.9,0.99";
  StudyOutput output_;
};

const bool theory_prop32_registered = theory_subcommands().add(
    "prop32", {
                  .summary = "Classifiers of rank 2: a construction, and what a run has learned",
                  .make = [] { return std::make_unique<TheoryProp32>(); },
              });

}  // namespace
}  // namespace kelvin
