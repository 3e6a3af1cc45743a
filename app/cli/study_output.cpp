#include "app/cli/study_output.h"

#include <fmt/format.h>

#include <filesystem>
#include <variant>

#include "app/cli/metadata.h"
#include "app/cli/output_file.h"
#include "app/cli/readings_text.h"
#include "app/cli/terminal.h"
#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/report/plot/svg.h"

namespace kelvin {

namespace fs = std::filesystem;

void StudyOutput::declare(CLI::App& command) {
  command.add_option("--output", page_, "an HTML page with the findings, tables and figures")
      ->type_name("FILE");
  command.add_option("--svg", svg_folder_, "write every figure into this folder")->type_name("DIR");
  declare_definitions(command, with_definitions_);
}

void StudyOutput::check_paths() const {
  if (!page_.empty()) check_output_file(page_, ".html", kMarkOfPage);
  if (svg_folder_.empty()) return;
  check(!fs::exists(svg_folder_) || fs::is_directory(svg_folder_), "--svg: ", svg_folder_,
        " is not a folder");
}

void StudyOutput::show(const Readings& readings,
                       const std::function<Study(const Readings&)>& study_of,
                       const CommonFlags& flags) const {
  const auto format = flags.format();
  const auto study = study_of(readings);
  const auto columns = stdout_columns();
  fmt::print("{}", is_for_people(format) && !with_definitions_
                       ? study_text(study, format, columns)
                       : readings_text(readings, format, with_definitions_, columns));
  if (!page_.empty()) {
    write_file_atomically(page_, study_page(study, readings, command_line()));
    if (!flags.is_quiet()) print_remark("written to " + page_);
  }
  write_figures(study);
}

void StudyOutput::write_figures(const Study& study) const {
  if (svg_folder_.empty()) return;
  std::error_code failure;
  fs::create_directories(svg_folder_, failure);
  check(!failure, svg_folder_, ": cannot be made: ", failure.message());
  for (const auto& figure : study.figures) {
    const auto path = fs::path(svg_folder_) / (figure.name + ".svg");
    check_replaceable(path, kMarkOfFigure);
    write_file_atomically(path, standalone_svg(std::visit(
                                    [](const auto& each) { return svg_of(each); }, figure.figure)));
  }
}

std::vector<double> numbers_of(const std::string& flag, const std::string& text) {
  std::vector<double> numbers;
  for (const auto& each : names_of(flag, text)) numbers.push_back(number_of(flag, each));
  return numbers;
}

std::vector<int64_t> whole_numbers_of(const std::string& flag, const std::string& text) {
  std::vector<int64_t> numbers;
  for (const auto& each : names_of(flag, text)) numbers.push_back(whole_number_of(flag, each));
  return numbers;
}

}  // namespace kelvin
