#include "kelvin/experiment/tasks/theory_fig6.h"

#include "app/cli/common_flags.h"
#include "app/cli/compute.h"
#include "app/cli/study_output.h"
#include "app/verbs/theory.h"

namespace kelvin {
namespace {

class TheoryFig6 : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    const auto number = [&](const char* flag, std::string& text, const char* help) {
      command.add_option(flag, text, help)->type_name("N");
    };
    number("--n", n_, "rows and columns of the random matrices (default: 30)");
    number("--ranks", ranks_, "of them, from 1 to this (default: 5)");
    number("--draws", draws_, "matrices of each rank (default: 5)");
    number("--seed", seed_, "of the matrices (default: 0)");
    command.add_option("--gamma", gamma_, "threshold of the rank, over sigma_1 (default: 0.001)")
        ->type_name("X");
    command
        .add_option("--scales", scales_, "as A,B (default: four in each decade of 0.1 to 10000)")
        ->type_name("X,Y");
    output_.declare(command);
  }

  int run() override {
    output_.check_paths();
    Figure6Request request{.n = whole_number_of("--n", n_),
                           .most_rank = whole_number_of("--ranks", ranks_),
                           .draws = whole_number_of("--draws", draws_),
                           .gamma = number_of("--gamma", gamma_),
                           .seed = whole_number_of("--seed", seed_)};
    if (!scales_.empty()) request.scales = numbers_of("--scales", scales_);
    Readings readings;
    const auto code = compute("theory fig6", common(),
                              [&](const ComputeLibrary& library, const RunContext& context) {
                                readings = library.run(request, context);
                              });
    if (code == kSuccess) output_.show(readings, fig6_study, common());
    return code;
  }

 private:
  std::string n_ = "30";
  std::string ranks_ = "5";
  std::string draws_ = "5";
  std::string seed_ = "0";
  std::string gamma_ = "0.001";
  std::string scales_;
  StudyOutput output_;
};

const bool theory_fig6_registered = theory_subcommands().add(
    "fig6", {
                .summary = "Rank of softmax(c M) over the scale c, for random M of low rank",
                .make = [] { return std::make_unique<TheoryFig6>(); },
            });

}  // namespace
}  // namespace kelvin
