#include <fmt/format.h>

#include <filesystem>

#include "app/cli/common_flags.h"
#include "app/cli/man_page.h"
#include "app/cli/verb.h"
#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/text.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

class Man : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    command.add_option("VERB", verb_, "of which; without it, the page of the tool")
        ->type_name("VERB of " + join(verbs().names(), "|"));
    command
        .add_option("--output", output_, "write the pages of the tool and all verbs into a folder")
        ->type_name("DIR");
  }

  int run() override {
    check(verb_.empty() || output_.empty(), "--output: is for all pages, and VERB for one");
    if (output_.empty()) {
      fmt::print("{}", verb_.empty() ? man_page() : man_page(verb_));
      return kSuccess;
    }
    fs::create_directories(output_);
    const auto write = [&](const std::string& name, const std::string& page) {
      write_file_atomically(fs::path(output_) / (name + ".1"), page);
    };
    write("kelvin", man_page());
    for (const auto& name : verbs().names()) write("kelvin-" + name, man_page(name));
    return kSuccess;
  }

 private:
  std::string verb_;
  std::string output_;
};

const bool man_registered =
    verbs().add("man", {
                           .summary = "Manual pages, for man: of the tool and of each verb",
                           .make = [] { return std::make_unique<Man>(); },
                       });

}  // namespace
}  // namespace kelvin
