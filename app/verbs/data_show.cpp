#include <fmt/format.h>

#include "app/cli/common_flags.h"
#include "app/cli/compute.h"
#include "app/cli/config_paths.h"
#include "app/cli/output_file.h"
#include "app/cli/run_context.h"
#include "app/cli/setting_words.h"
#include "app/cli/terminal.h"
#include "app/verbs/data.h"
#include "kelvin/core/check.h"
#include "kelvin/experiment/tasks/sample_images.h"
#include "kelvin/formats/png_file.h"
#include "kelvin/report/plot/mosaic.h"

namespace kelvin {
namespace {

std::vector<MosaicImage> labelled(const ImageSamples& samples) {
  std::vector<MosaicImage> images;
  for (int64_t i = 0; i < samples.images.size(); ++i) {
    const auto label = samples.images.labels.at(static_cast<size_t>(i));
    images.push_back({.picture = picture_of(samples.images, i),
                      .label = samples.class_names.at(static_cast<size_t>(label))});
  }
  return images;
}

class ShowData : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    declare_input(command, "NAME", name_, "a dataset, see 'kelvin list datasets'")
        ->type_name("NAME of <datasets>")
        ->required();
    command.add_option("--output", output_, "the PNG to write")->type_name("FILE")->required();
    command.add_option("--split", split_, "train or test (default: train)")
        ->type_name("SPLIT of train|test");
    command.add_option("--count", count_, "how many, as equally of each class as possible")
        ->type_name("N")
        ->capture_default_str();
    command.add_option("--columns", columns_, "images in a row")
        ->type_name("N")
        ->capture_default_str();
    declare_settings(command, overrides_,
                     "settings of the data, for example data.augment=crop-flip");
  }

  int run() override {
    check(split_ == "train" || split_ == "test", "--split: must be train or test, got '", split_,
          "'");
    check(count_ >= 1 && count_ <= kMost, "--count: must be from 1 to ", kMost, ", got ", count_);
    check(columns_ >= 1 && columns_ <= kMost, "--columns: must be from 1 to ", kMost, ", got ",
          columns_);
    check_output_file(output_, "", kMarkOfPicture);
    Config config;
    config.set("data.name", name_);
    for (const auto& assignment : overrides_) {
      check(!assignment.starts_with("data.name="), "data.name: is '", name_, "' already");
      config.apply_override(assignment);
    }
    const auto data_folder = common().data_folder();
    make_paths_absolute(config, data_folder);

    RunContext context;
    context.data_folder = data_folder;
    const auto library = load_compute_library(common().threads());
    const auto samples = library.run(
        SampleImagesRequest{.config = config, .count = count_, .of_training = split_ == "train"},
        context);
    write_png(output_, draw_mosaic(labelled(samples), columns_));
    if (common().format() == TableFormat::text) {
      fmt::print("{}: {} {} images of {}\n", output_, samples.images.size(), split_, name_);
      return kSuccess;
    }
    print_table({.columns = {{"file"}, {"images", Alignment::right}, {"split"}, {"dataset"}},
                 .rows = {{output_, std::to_string(samples.images.size()), split_, name_}}},
                common().format());
    return kSuccess;
  }

 private:
  static constexpr int64_t kMost = 10'000;

  std::string name_;
  std::string output_;
  std::string split_ = "train";
  int64_t count_ = 100;
  int64_t columns_ = 10;
  std::vector<std::string> overrides_;
};

const bool data_show_registered =
    data_subcommands().add("show", {
                                       .summary = "Draw images with their labels into a PNG",
                                       .make = [] { return std::make_unique<ShowData>(); },
                                   });

}  // namespace
}  // namespace kelvin
