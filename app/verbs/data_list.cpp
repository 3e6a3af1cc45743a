#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "app/cli/common_flags.h"
#include "app/cli/human_text.h"
#include "app/cli/terminal.h"
#include "app/verbs/data.h"
#include "kelvin/sources/download.h"
#include "kelvin/sources/known_dataset.h"
#include "kelvin/sources/stored_dataset.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

int64_t sum(const std::vector<int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

// Empty if it is not there.
std::string folder_of(const KnownDataset& dataset, const fs::path& data_folder) {
  const auto* layout = find_layout(dataset, data_folder);
  return layout == nullptr ? "" : (data_folder / layout->folder).string();
}

// Image folders have images of any size, and nobody says how many.
bool has_any_size(const KnownDataset& dataset) {
  return dataset.layouts.front().format == StoredFormat::image_folder;
}

Table table_of(const fs::path& data_folder) {
  Table table{.columns = {{"name"},
                          {"classes", Alignment::right},
                          {"images", Alignment::right},
                          {"shape"},
                          {"where"},
                          {"licence"}}};
  for (const auto& dataset : known_datasets()) {
    const auto images = sum(dataset.train_counts) + sum(dataset.test_counts);
    const auto folder = folder_of(dataset, data_folder);
    table.rows.push_back(
        {dataset.name, std::to_string(dataset.classes()), images > 0 ? std::to_string(images) : "",
         has_any_size(dataset)
             ? fmt::format("{}, any size", dataset.channels)
             : fmt::format("{} x {} x {}", dataset.channels, dataset.height, dataset.width),
         folder.empty() ? "not here" : folder, dataset.licence});
  }
  table.notes = {"Others are embedded and need no files; 'kelvin list datasets' has them, too."};
  return table;
}

Json downloads_of(const KnownDataset& dataset) {
  auto list = Json::array();
  for (const auto& route : dataset.routes) {
    auto files = Json::array();
    for (const auto& download : route.downloads) {
      auto mirrors = Json::array();
      for (const auto& mirror : download.mirrors) mirrors.push_back(address_of(mirror));
      files.push_back({{"bytes", download.bytes}, {"md5", download.md5}, {"mirrors", mirrors}});
    }
    list.push_back(files);
  }
  return list;
}

Json facts_of(const KnownDataset& dataset, const fs::path& data_folder) {
  const auto channels = static_cast<size_t>(dataset.channels);
  const auto folder = folder_of(dataset, data_folder);
  const auto count = [](const std::vector<int64_t>& counts) {
    return counts.empty() ? Json() : Json(sum(counts));
  };
  Json facts;
  facts["name"] = dataset.name;
  facts["summary"] = dataset.summary;
  facts["classes"] = dataset.classes();
  facts["train_images"] = count(dataset.train_counts);
  facts["test_images"] = count(dataset.test_counts);
  facts["shape"] =
      has_any_size(dataset) ? Json() : Json({dataset.channels, dataset.height, dataset.width});
  facts["mean"] = std::vector<double>(dataset.mean.begin(), dataset.mean.begin() + channels);
  facts["deviation"] =
      std::vector<double>(dataset.std_dev.begin(), dataset.std_dev.begin() + channels);
  facts["folder"] = folder.empty() ? Json() : Json(folder);
  facts["licence"] = dataset.licence;
  facts["citation"] = dataset.citation;
  facts["routes"] = downloads_of(dataset);
  facts["how_to_get"] = dataset.how_to_get.empty() ? Json() : Json(dataset.how_to_get);
  facts["class_names"] = dataset.class_names;
  return facts;
}

class ListData : public Verb {
 public:
  int run() override {
    const auto format = common().format();
    const auto data_folder = common().data_folder();
    if (format != TableFormat::json && format != TableFormat::jsonl) {
      print_table(table_of(data_folder), format);
      return kSuccess;
    }
    auto all = Json::array();
    for (const auto& dataset : known_datasets()) all.push_back(facts_of(dataset, data_folder));
    if (format == TableFormat::json) {
      fmt::print("{}\n", json_text(all, 1));
    } else {
      for (const auto& facts : all) fmt::print("{}\n", json_text(facts));
    }
    return kSuccess;
  }

 private:
};

const bool data_list_registered =
    data_subcommands().add("list", {
                                       .summary = "Datasets that kelvin knows, and where they lie",
                                       .make = [] { return std::make_unique<ListData>(); },
                                   });

}  // namespace
}  // namespace kelvin
