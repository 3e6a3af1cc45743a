#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "app/cli/common_flags.h"
#include "app/cli/human_text.h"
#include "app/cli/progress_bar.h"
#include "app/cli/terminal.h"
#include "app/verbs/data.h"
#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/sources/stored_dataset.h"
#include "kelvin/sources/verify.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view kImageFolder = "imagefolder:";

std::string word_of(DataVerdict verdict) {
  switch (verdict) {
    case DataVerdict::official:
      return "official";
    case DataVerdict::equal_content:
      return "equal content";
    case DataVerdict::readable:
      return "readable";
    case DataVerdict::wrong:
      break;
  }
  return "wrong";
}

std::string word_of(FileState state) {
  switch (state) {
    case FileState::official:
      return "official";
    case FileState::unpublished:
      return "not published";
    case FileState::differs:
      return "differs";
    case FileState::missing:
      break;
  }
  return "missing";
}

std::string numbers(const std::vector<double>& values) {
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const auto value : values) texts.push_back(fmt::format("{:.4f}", value));
  return join(texts, " ");
}

// One for each folder, below its path: whole paths would leave no room for an md5 in one piece.
std::vector<Table> file_tables(const std::vector<VerifyReport>& reports) {
  std::vector<Table> tables;
  std::set<fs::path> shown;  // datasets may share files
  for (const auto& report : reports) {
    Table table{.title = report.folder.string(),
                .columns = {{"file"}, {"bytes", Alignment::right}, {"md5"}, {"state"}}};
    for (const auto& file : report.files) {
      if (!shown.insert(file.path).second) continue;
      const bool is_there = file.state != FileState::missing;
      table.rows.push_back({file.path.lexically_relative(report.folder).string(),
                            is_there ? std::to_string(file.bytes) : "", file.md5,
                            word_of(file.state)});
    }
    if (!table.rows.empty()) tables.push_back(std::move(table));
  }
  return tables;
}

std::vector<std::string> summary_row(const VerifyReport& report) {
  std::vector<std::string> row = {report.name, word_of(report.verdict)};
  std::vector<std::string> samples;
  std::vector<std::string> classes;
  for (const auto& split : report.splits) {
    samples.push_back(fmt::format("{} {}", split.name, split.samples));
    if (classes.empty()) classes.push_back(std::to_string(split.counts.size()));
  }
  const auto statistics =
      report.splits.empty() ? PixelStatistics{} : report.splits.front().statistics;
  row.insert(row.end(), {join(samples, ", "), join(classes, ""), numbers(statistics.mean),
                         numbers(statistics.std_dev),
                         report.reason.empty() ? report.folder.string() : report.reason});
  return row;
}

Table summary_table(const std::vector<VerifyReport>& reports) {
  Table table{.columns = {{"name"},
                          {"verdict"},
                          {"images"},
                          {"classes", Alignment::right},
                          {"mean"},
                          {"deviation"},
                          {"folder, or what is wrong"}}};
  for (const auto& report : reports) table.rows.push_back(summary_row(report));
  return table;
}

Json json_of(const VerifyReport& report) {
  Json facts;
  facts["name"] = report.name;
  facts["verdict"] = word_of(report.verdict);
  facts["reason"] = report.reason.empty() ? Json() : Json(report.reason);
  facts["folder"] = report.folder.string();
  facts["files"] = Json::array();
  for (const auto& file : report.files) {
    facts["files"].push_back({{"path", file.path.string()},
                              {"bytes", file.bytes},
                              {"md5", file.md5},
                              {"state", word_of(file.state)}});
  }
  facts["splits"] = Json::array();
  for (const auto& split : report.splits) {
    Json entry = {{"name", split.name}, {"samples", split.samples}, {"counts", split.counts}};
    if (!split.statistics.mean.empty()) {
      entry["mean"] = split.statistics.mean;
      entry["deviation"] = split.statistics.std_dev;
    }
    facts["splits"].push_back(entry);
  }
  return facts;
}

void print(const std::vector<VerifyReport>& reports, TableFormat format) {
  if (format == TableFormat::json || format == TableFormat::jsonl) {
    auto all = Json::array();
    for (const auto& report : reports) all.push_back(json_of(report));
    if (format == TableFormat::json) fmt::print("{}\n", json_text(all, 1));
    if (format == TableFormat::jsonl) {
      for (const auto& facts : all) fmt::print("{}\n", json_text(facts, -1));
    }
    return;
  }
  if (format == TableFormat::text) {
    for (const auto& table : file_tables(reports)) {
      print_table(table, format);
      fmt::print("\n");
    }
  }
  print_table(summary_table(reports), format);
}

// Known datasets that are there, and folders beside them that hold images.
std::vector<std::string> all_names(const fs::path& data_folder) {
  std::vector<std::string> names;
  std::vector<std::string> known_folders;
  for (const auto& dataset : known_datasets()) {
    const auto* layout = find_layout(dataset, data_folder);
    if (layout == nullptr) continue;
    names.push_back(dataset.name);
    known_folders.push_back(layout->folder);
  }
  std::error_code ignored;  // a folder that is not there holds nothing
  std::vector<std::string> others;
  for (const auto& entry : fs::directory_iterator(data_folder, ignored)) {
    const auto name = entry.path().filename().string();
    const bool is_known =
        std::find(known_folders.begin(), known_folders.end(), name) != known_folders.end();
    if (!is_known && looks_like_image_folder(entry.path())) {
      others.push_back(std::string(kImageFolder) + name);
    }
  }
  std::sort(others.begin(), others.end());
  names.insert(names.end(), others.begin(), others.end());
  return names;
}

class VerifyData : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    command
        .add_option("NAME", names_,
                    "datasets, or imagefolder:PATH for any folder of images (default: all that are "
                    "there)")
        ->type_name("NAME of <datasets>");
    command.add_flag("--thorough", is_thorough_, "decode every image of an image folder");
  }

  int run() override {
    const auto format = common().format();
    const auto data_folder = common().data_folder();
    const auto names = names_.empty() ? all_names(data_folder) : names_;
    check(!names.empty(), data_folder.string(), ": holds no dataset; kelvin data list names them");
    std::vector<VerifyReport> reports;
    reports.reserve(names.size());
    for (const auto& name : names) reports.push_back(verify_one(name, data_folder));
    print(reports, format);
    const bool is_any_wrong = std::any_of(reports.begin(), reports.end(), [](const auto& report) {
      return report.verdict == DataVerdict::wrong;
    });
    return is_any_wrong ? kUserError : kSuccess;
  }

 private:
  VerifyReport verify_one(const std::string& name, const fs::path& data_folder) const {
    ProgressBar bar(common().is_quiet());
    const VerifyOptions options{.thorough = is_thorough_,
                                .progress = [&](int64_t done, int64_t total) {
                                  bar.show({.label = "verify " + name,
                                            .done = static_cast<double>(done),
                                            .total = static_cast<double>(total)});
                                }};
    check(!is_embedded(name), name, ": is embedded; nothing to verify");
    if (!name.starts_with(kImageFolder)) return verify(known_dataset(name), data_folder, options);
    const fs::path path = name.substr(kImageFolder.size());
    auto report = verify_image_folder(fs::is_directory(path) ? path : data_folder / path, options);
    report.name = name;
    return report;
  }

  std::vector<std::string> names_;
  bool is_thorough_ = false;
};

const bool data_verify_registered = data_subcommands().add(
    "verify", {
                  .summary = "Compare datasets with what is published about them",
                  .make = [] { return std::make_unique<VerifyData>(); },
              });

}  // namespace
}  // namespace kelvin
