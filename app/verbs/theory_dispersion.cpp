#include "kelvin/experiment/tasks/theory_dispersion.h"

#include "app/cli/common_flags.h"
#include "app/cli/compute.h"
#include "app/cli/study_output.h"
#include "app/verbs/theory.h"
#include "kelvin/core/check.h"
#include "kelvin/experiment/tasks/evaluate_attention.h"

namespace kelvin {
namespace {

class TheoryDispersion : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    command
        .add_option("NETWORKS", networks_,
                    "files of 'kelvin attention train', or folders of them: their heads instead of "
                    "given spreads")
        ->type_name("");
    command
        .add_option("--spreads", spreads_,
                    "largest less smallest logit (default: 2,5.69,5.82,10; those of Gemma 2B and "
                    "7B in the middle)")
        ->type_name("X,Y");
    command.add_option("--lengths", lengths_, "numbers of logits (default: 16,32,...,16384)")
        ->type_name("A,B");
    command.add_option("-T,--temperature", temperature_, "divides the logits (default: 1)")
        ->type_name("X");
    command.add_option("--sets", sets_, "of each length, for NETWORKS (default: 256)")
        ->type_name("N");
    output_.declare(command);
  }

  int run() override {
    output_.check_paths();
    return networks_.empty() ? show_bounds() : show_heads();
  }

 private:
  int show_bounds() const {
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

  int show_heads() const {
    check(spreads_.empty(), "--spreads: are those of the networks");
    EvaluateAttentionRequest request{.networks = {networks_.begin(), networks_.end()},
                                     .sets = whole_number_of("--sets", sets_),
                                     .maps = {}};
    if (!lengths_.empty()) request.sizes = whole_numbers_of("--lengths", lengths_);
    EvaluatedAttention evaluated;
    const auto code = compute("theory dispersion", common(),
                              [&](const ComputeLibrary& library, const RunContext& context) {
                                evaluated = library.run(request, context);
                              });
    if (code == kSuccess) output_.show(evaluated.readings, heads_study, common());
    return code;
  }

  std::vector<std::string> networks_;
  std::string sets_ = "256";
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
