#include <fmt/format.h>

#include "app/bench/race.h"
#include "app/bench/race_table.h"
#include "app/cli/common_flags.h"
#include "app/cli/human_text.h"
#include "app/cli/interrupts.h"
#include "app/cli/machine.h"
#include "app/cli/progress_bar.h"
#include "app/cli/setting_words.h"
#include "app/cli/terminal.h"
#include "app/verbs/bench.h"
#include "kelvin/core/check.h"
#include "kelvin/core/text.h"

namespace kelvin {
namespace {

int64_t checked_count(const std::string& flag, const std::string& text, int64_t most) {
  const auto count = whole_number_of(flag, text);
  check(count >= 1 && count <= most, flag, ": must be from 1 to ", most, ", got ", count);
  return count;
}

class TrainBench : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    command.add_option("--model", choice_.model, "which network (default: five usual ones)")
        ->type_name("NAME of <models>");
    command.add_option("-b,--batch-size", batch_size_, "images per step (default: 128)")
        ->type_name("N");
    command
        .add_option("--precision", choice_.precision,
                    "of products: fp32 or bf16 (default: fp32; of the usual networks both)")
        ->type_name("NAME of fp32|bf16");
    command.add_option("--rounds", rounds_, "turns of each side (default: 5)")->type_name("N");
    command
        .add_option("--steps", steps_, "steps in each turn (default: as many as 2 seconds have)")
        ->type_name("N");
    command.add_flag("--reference-ops", choice_.uses_reference_ops,
                     "train with LibTorch's own operations, without kelvin's faster ones");
    command.add_flag("--plain", choice_.uses_reference_ops)->group("");  // its former name
    command.add_flag("--sweep", is_sweep_,
                     "kelvin alone, over batch sizes, depths and widths; of --model over batch "
                     "sizes");
    command.add_flag("--without-pytorch", is_alone_, "kelvin alone");
    command
        .add_option("--python", python_, "a Python that has PyTorch (default: /usr/bin/python3)")
        ->type_name("PATH");
    declare_settings(command, choice_.overrides, "any setting, for example model.depth=16");
  }

  int run() override {
    const auto format = common().format();
    read_flags();
    const auto rows = is_sweep_ ? sweep_rows(choice_) : bench_rows(choice_);
    catch_interrupts(SecondInterrupt::exits);
    run_races(rows);
    if (!results_.empty()) print(format);
    if (interrupts() > 0) return interrupt_exit_code();
    check(failures_.empty(), join(failures_, "; "));
    return kSuccess;
  }

 private:
  void read_flags() {
    if (!batch_size_.empty()) {
      choice_.batch_size = checked_count("--batch-size", batch_size_, 1'000'000);
    }
    options_.rounds = checked_count("--rounds", rounds_, 1000);
    if (!steps_.empty()) options_.steps = checked_count("--steps", steps_, 1'000'000);
    options_.threads = {.count = common().threads(), .is_given = common().has_threads()};
    if (!is_alone_ && !is_sweep_) options_.python = python_;
  }

  // One that fails takes no other with it; an interrupt ends them all.
  void run_races(const std::vector<BenchRow>& rows) {
    ProgressBar bar(common().is_quiet());
    for (size_t i = 0; i < rows.size() && interrupts() == 0; ++i) {
      const auto before = static_cast<double>(i);
      options_.on_round = [&](int64_t done, int64_t total) {
        bar.show({.label = "bench",
                  .done = before + static_cast<double>(done) / static_cast<double>(total),
                  .total = static_cast<double>(rows.size()),
                  .note = rows[i].name});
      };
      options_.on_round(0, 1);
      try {
        results_.push_back(race(rows[i], options_));
      } catch (const Error& error) {
        if (interrupts() == 0) failures_.emplace_back(error.what());
        continue;
      }
      const auto& missing = results_.back().pytorch_missing;
      if (missing.empty()) continue;
      bar.clear();
      print_for_people("no PyTorch to compare with: " + missing + "\n");
      options_.python.clear();  // said once
    }
  }

  void print(TableFormat format) const {
    if (format == TableFormat::json || format == TableFormat::jsonl) {
      auto document = race_document(results_);
      document["machine"] = machine_description();
      fmt::print("{}\n", json_text(document, format == TableFormat::json ? 1 : -1));
      return;
    }
    print_table(is_sweep_ ? sweep_table(results_) : race_table(results_), format);
    if (format == TableFormat::csv) return;
    for (const auto& note : race_notes(results_)) fmt::print("\n{}\n", note);
  }

  BenchChoice choice_;
  std::string batch_size_;
  std::string rounds_ = "5";
  std::string steps_;
  bool is_sweep_ = false;
  bool is_alone_ = false;
  std::string python_ = "/usr/bin/python3";
  RaceOptions options_;
  std::vector<RaceResult> results_;
  std::vector<std::string> failures_;
};

const bool bench_train_registered = bench_subcommands().add(
    "train", {
                 .summary = "Steps of training beside PyTorch's, in turns: images/s, ratio, share "
                            "of the peak",
                 .make = [] { return std::make_unique<TrainBench>(); },
             });

}  // namespace
}  // namespace kelvin
