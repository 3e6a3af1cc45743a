#include "kelvin/experiment/tasks/theory_dispersion.h"

#include "app/cli/common_flags.h"
#include "app/cli/compute.h"
#include "app/cli/study_output.h"
#include "app/verbs/theory.h"

namespace kelvin {
namespace {

class TheoryDispersion : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    command
        .add_option("--spreads", spreads_,
                    "largest less smallest logit (default: 2,5.69,5.82,10; those of Gemma 2B and "
                    "7B in the middle)")
        ->type_name("X,Y");
    command.add_option("--lengths", lengths_, "numbers of logits (default: 16,32,...,16384)")
        ->type_name("A,B");
    command.add_option("-T,--temperature", temperature_, "divides the logits (default: 1)")
        ->type_name("X");
    output_.declare(command);
  }

  int run() override {
    output_.check_paths();
    DispersionRequest request{.temperature = number_of("--temperature", temperature_)};
    if (!spreads_.empty()) request.spreads = numbers_of("--spreads", spreads_);
    if (!lengths_.empty()) request.lengths = whole_numbers_of("--lengths", lengths_);
    Readings readings;
    const auto code = compute("theory dispersion", common(),
                              [&](const ComputeLibrary& library, const RunContext& context) {
                                readings = library.run(request, context);
                              });
    if (code == kSuccess) output_.show(readings, dispersion_study, common());
    return code;
  }

 private:
  std::string spreads_;
  std::string lengths_;
  std::string temperature_ = "1";
  StudyOutput output_;
};

const bool theory_dispersion_registered = theory_subcommands().add(
    "dispersion", {
                      .summary = "What a spread of logits allows attention weights to be",
                      .make = [] { return std::make_unique<TheoryDispersion>(); },
                  });

}  // namespace
}  // namespace kelvin
