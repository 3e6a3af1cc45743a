#include <fmt/format.h>

#include <memory>
#include <string>

#include "app/cli/common_flags.h"
#include "app/cli/human_text.h"
#include "app/cli/readings_text.h"
#include "app/cli/terminal.h"
#include "app/cli/verb.h"
#include "kelvin/report/tables/run_difference.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {
namespace {

class Compare : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    command.add_option("A", a_, "a run folder")->type_name("RUN")->required();
    command.add_option("B", b_, "another one")->type_name("RUN")->required();
    command.add_flag("--all", all_, "also what is equal, and the points of curves");
    declare_definitions(command, with_definitions_);
  }

  int run() override {
    const auto format = common().format();
    const auto difference = run_difference(load_run(a_), load_run(b_), all_);
    if (is_for_people(format)) fmt::print("A: {}\n\nB: {}\n\n", a_, b_);
    fmt::print("{}", difference_text(difference, format, with_definitions_, stdout_columns()));
    const auto note = not_compared_text(difference);
    // Programs read rows; the text for people has it already.
    if (!is_for_people(format) && !note.empty()) print_for_people(note + "\n");
    return kSuccess;
  }

 private:
  std::string a_;
  std::string b_;
  bool all_ = false;
  bool with_definitions_ = false;
};

const bool compare_registered =
    verbs().add("compare", {
                               .summary = "How two runs differ: settings, versions, readings",
                               .make = [] { return std::make_unique<Compare>(); },
                           });

}  // namespace
}  // namespace kelvin
