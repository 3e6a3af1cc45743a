#include <filesystem>

#include "app/cli/common_flags.h"
#include "app/cli/compute.h"
#include "app/cli/study_output.h"
#include "app/cli/terminal.h"
#include "app/verbs/attention.h"
#include "kelvin/core/check.h"
#include "kelvin/experiment/tasks/fit_beta.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

class AttentionFit : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    command
        .add_option("NETWORKS", networks_,
                    "files of 'kelvin attention train' with softmax, or folders of them")
        ->type_name("")
        ->required();
    const auto option = [&](const char* flag, std::string& text, const char* help,
                            const char* type) {
      command.add_option(flag, text, help)->type_name(type);
    };
    option("--sizes", sizes_, "items of a set (default: 16,32,...,1024)", "A,B");
    option("--sets", sets_, "of each size and network (default: 256)", "N");
    option("--seed", seed_, "of the sets; evaluation has another (default: 1)", "N");
    option("--least", least_, "beta to try (default: 0.25)", "X");
    option("--most", most_, "beta to try (default: 10)", "X");
    option("--beta", beta_, "a new TOML file for the coefficients", "FILE");
    output_.declare(command);
  }

  int run() override {
    output_.check_paths();
    check(beta_.empty() || !fs::exists(beta_), "--beta: ", beta_, " exists already");
    FitBetaRequest request{.networks = {networks_.begin(), networks_.end()},
                           .sets = whole_number_of("--sets", sets_),
                           .seed = whole_number_of("--seed", seed_),
                           .least = number_of("--least", least_),
                           .most = number_of("--most", most_),
                           .output = beta_};
    if (!sizes_.empty()) request.sizes = whole_numbers_of("--sizes", sizes_);
    Readings readings;
    const auto code = compute("attention fit", common(),
                              [&](const ComputeLibrary& library, const RunContext& context) {
                                readings = library.run(request, context);
                              });
    if (code != kSuccess) return code;
    output_.show(readings, beta_study, common());
    if (!beta_.empty() && !common().is_quiet()) {
      print_remark("written to " + beta_ + "; use it with kelvin attention evaluate --beta " +
                   beta_);
    }
    return kSuccess;
  }

 private:
  std::vector<std::string> networks_;
  std::string sizes_;
  std::string sets_ = "256";
  std::string seed_ = "1";
  std::string least_ = "0.25";
  std::string most_ = "10";
  std::string beta_;
  StudyOutput output_;
};

const bool attention_fit_registered = attention_subcommands().add(
    "fit", {
               .summary = "An adaptive temperature's polynomial for these networks",
               .make = [] { return std::make_unique<AttentionFit>(); },
           });

}  // namespace
}  // namespace kelvin
