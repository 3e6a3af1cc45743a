#include <fmt/format.h>

#include <map>

#include "app/cli/common_flags.h"
#include "app/cli/output_file.h"
#include "app/cli/report_input.h"
#include "app/cli/terminal.h"
#include "app/cli/verb.h"
#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/report/page/figure_files.h"

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
        .add_option(
            "--csv", csv_folder_,
            "also write the data of every figure, and fit-and-collapse.csv, into this folder")
        ->type_name("DIR");
    command.add_option("--svg", svg_folder_, "also write every figure into this folder")
        ->type_name("DIR");
  }

  int run() override {
    const auto page =
        output_.empty() ? fs::path(roots_.front()) / "report.html" : fs::path(output_);
    check_replaceable(page, kMarkOfPage);
    const auto input = page_input({roots_.begin(), roots_.end()});
    std::map<std::string, std::string> csvs;
    std::map<std::string, std::string> svgs;
    if (!csv_folder_.empty()) csvs = figure_csvs(input);
    if (!svg_folder_.empty()) svgs = figure_svgs(input);
    for (const auto& [name, text] : csvs) {
      check_replaceable(fs::path(csv_folder_) / (name + ".csv"), first_columns(text));
    }
    for (const auto& [name, text] : svgs) {
      check_replaceable(fs::path(svg_folder_) / (name + ".svg"), kMarkOfFigure);
    }
    for (const auto& folder : {csv_folder_, svg_folder_}) {
      if (!folder.empty()) make_folder(folder);  // before anything is written
    }
    write_page(input, page);
    std::vector<std::string> written = {page.string()};
    write_all(csv_folder_, ".csv", csvs, written);
    write_all(svg_folder_, ".svg", svgs, written);
    print(written);
    return kSuccess;
  }

 private:
  // By which a table of ours is known again: later columns are those of the runs it is about.
  static std::string first_columns(const std::string& csv) {
    const auto end = csv.find_first_of(",\n", csv.find(',') + 1);
    return csv.substr(0, end);
  }

  static void make_folder(const fs::path& folder) {
    std::error_code failure;
    fs::create_directories(folder, failure);
    check(!failure, folder.string(), ": cannot be made: ", failure.message());
  }

  static void write_all(const fs::path& folder, const std::string& extension,
                        const std::map<std::string, std::string>& files,
                        std::vector<std::string>& written) {
    for (const auto& [name, text] : files) {
      const auto path = folder / (name + extension);
      write_file_atomically(path, text);
      written.push_back(path.string());
    }
  }

  // As text just the paths, to be clicked on or piped.
  void print(const std::vector<std::string>& paths) const {
    if (common().format() == TableFormat::text) {
      for (const auto& path : paths) fmt::print("{}\n", path);
      return;
    }
    Table table{.columns = {{"file"}}};
    for (const auto& path : paths) table.rows.push_back({path});
    print_table(table, common().format());
  }

  std::vector<std::string> roots_;
  std::string output_;
  std::string csv_folder_;
  std::string svg_folder_;
};

const bool report_registered =
    verbs().add("report", {
                              .summary = "One HTML page about runs; its figures as CSV and SVG",
                              .make = [] { return std::make_unique<Report>(); },
                          });

}  // namespace
}  // namespace kelvin
