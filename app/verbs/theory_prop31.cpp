#include "kelvin/experiment/tasks/theory_prop31.h"

#include <filesystem>

#include "app/cli/common_flags.h"
#include "app/cli/compute.h"
#include "app/cli/setting_words.h"
#include "app/cli/study_output.h"
#include "app/verbs/theory.h"
#include "kelvin/core/check.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

class TheoryProp31 : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    declare_input(command, "INPUT", input_,
                  "a run, or an npz with logits [samples, classes] and perhaps a temperature; "
                  "without it random matrices")
        ->type_name("RUN or x.npz");
    const auto number = [&](const char* flag, std::string& text, const char* help) {
      command.add_option(flag, text, help)->type_name("N");
    };
    number("--matrices", matrices_, "how many random ones (default: 10000)");
    number("--least", least_, "the smallest size of random ones (default: 2)");
    number("--most", most_, "the largest size of random ones (default: 64)");
    number("--seed", seed_, "of random ones (default: 0)");
    number("--samples", samples_, "of INPUT, the first ones (default: all)");
    output_.declare(command);
  }

  int run() override {
    output_.check_paths();
    SingularGapRequest request{.samples = whole_number_of("--samples", samples_),
                               .matrices = whole_number_of("--matrices", matrices_),
                               .least_size = whole_number_of("--least", least_),
                               .most_size = whole_number_of("--most", most_),
                               .seed = whole_number_of("--seed", seed_)};
    if (!input_.empty()) {
      check(fs::exists(input_), input_, ": no such run or file");
      (fs::is_directory(input_) ? request.run : request.dump) = input_;
    }
    Readings readings;
    const auto code = compute("theory prop31", common(),
                              [&](const ComputeLibrary& library, const RunContext& context) {
                                readings = library.run(request, context);
                              });
    if (code == kSuccess) output_.show(readings, prop31_study, common());
    return code;
  }

 private:
  std::string input_;
  std::string matrices_ = "10000";
  std::string least_ = "2";
  std::string most_ = "64";
  std::string seed_ = "0";
  std::string samples_ = "0";
  StudyOutput output_;
};

const bool theory_prop31_registered = theory_subcommands().add(
    "prop31", {
                  .summary = "Gap between singular values of a softmax, beside its bound",
                  .make = [] { return std::make_unique<TheoryProp31>(); },
              });

}  // namespace
}  // namespace kelvin
