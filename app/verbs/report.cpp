#include <fmt/format.h>

#include "app/exit_code.h"
#include "app/report_input.h"
#include "app/verb.h"
#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/report/csv.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

class Report : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    command.add_option("RUN", roots_, "run folders, or folders of runs")->type_name("")->required();
    command.add_option("--output", output_, "HTML file (default: report.html in the first RUN)")
        ->type_name("FILE");
    command
        .add_option("--csv", csv_folder_, "also write the data of every figure into this folder")
        ->type_name("DIR");
  }

  int run() override {
    const auto input = page_input({roots_.begin(), roots_.end()});
    const auto page =
        output_.empty() ? fs::path(roots_.front()) / "report.html" : fs::path(output_);
    check(!fs::is_directory(page), page.string(), ": is a folder, must be a file");
    write_page(input, page);
    fmt::print("{}\n", page.string());
    if (!csv_folder_.empty()) write_csvs(input);
    return kSuccess;
  }

 private:
  void write_csvs(const PageInput& input) const {
    std::error_code failure;
    fs::create_directories(csv_folder_, failure);
    check(!failure, csv_folder_, ": cannot be made: ", failure.message());
    for (const auto& [name, text] : figure_csvs(input)) {
      const auto path = fs::path(csv_folder_) / (name + ".csv");
      write_file_atomically(path, text);
      fmt::print("{}\n", path.string());
    }
  }

  std::vector<std::string> roots_;
  std::string output_;
  std::string csv_folder_;
};

const bool registered = verbs().add(
    "report", {
                  .summary = "One HTML page about runs, and the data of its figures as CSV",
                  .make = [] { return std::make_unique<Report>(); },
              });

}  // namespace
}  // namespace kelvin
