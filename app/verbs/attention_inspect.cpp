#include <filesystem>

#include "app/cli/common_flags.h"
#include "app/cli/compute.h"
#include "app/cli/study_output.h"
#include "app/verbs/attention.h"
#include "kelvin/core/check.h"
#include "kelvin/experiment/tasks/inspect_language.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

std::vector<HeatMapFigure> heat_maps(const std::vector<AttentionRows>& all) {
  std::vector<HeatMapFigure> figures;
  figures.reserve(all.size());
  for (const auto& each : all) {
    figures.push_back({.title = "Weights of " + each.attention,
                       .x_label = "key",
                       .y_label = "query",
                       .rows = each.rows});
  }
  return figures;
}

class AttentionInspect : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    command
        .add_option("MODEL", model_,
                    "a checkpoint of llama2.c, or a folder with config.json and model.safetensors "
                    "of a Llama")
        ->type_name("")
        ->required();
    const auto option = [&](const char* flag, std::string& text, const char* help,
                            const char* type) {
      command.add_option(flag, text, help)->type_name(type);
    };
    option("--text", text_, "to read, in UTF-8", "FILE");
    option("--tokenizer", tokenizer_,
           "tokenizer.bin of llama2.c (default: the one beside the model)", "FILE");
    option("--tokens", tokens_, "of the text at most (default: 4096)", "N");
    option("--window", window_, "tokens of one pass (default: four times the trained context)",
           "N");
    option("--maps", maps_,
           "in place of softmax, as adaptive,adaptive:past_the_peak=hold (default: adaptive)",
           "A,B of <softmaxes>");
    option("--prompt", prompt_, "to go on with", "TEXT");
    option("--generate", generate_, "tokens to write behind the prompt (default: 0)", "N");
    output_.declare(command);
  }

  int run() override {
    output_.check_paths();
    check(!text_.empty() || !output_.has_files(),
          "--output and --svg: show what a text tells (--text); there is none");
    InspectLanguageRequest request{.model = model_,
                                   .tokenizer = tokenizer_.empty() ? beside_model() : tokenizer_,
                                   .text = text_,
                                   .tokens = whole_number_of("--tokens", tokens_),
                                   .window = whole_number_of("--window", window_),
                                   .maps = names_of("--maps", maps_),
                                   .prompt = prompt_,
                                   .generate = whole_number_of("--generate", generate_)};
    InspectedLanguage inspected;
    const auto code = compute("attention inspect", common(),
                              [&](const ComputeLibrary& library, const RunContext& context) {
                                inspected = library.run(request, context);
                              });
    if (code != kSuccess) return code;
    const auto heat = heat_maps(inspected.heat);
    output_.show(
        inspected.readings,
        [&](const Readings& readings) { return language_study(readings, heat, inspected.written); },
        common());
    return kSuccess;
  }

 private:
  std::string beside_model() const {
    const fs::path model = model_;
    return (fs::is_directory(model) ? model : model.parent_path()) / "tokenizer.bin";
  }

  std::string model_;
  std::string text_;
  std::string tokenizer_;
  std::string tokens_ = "4096";
  std::string window_ = "0";
  std::string maps_ = "adaptive";
  std::string prompt_;
  std::string generate_ = "0";
  StudyOutput output_;
};

const bool attention_inspect_registered = attention_subcommands().add(
    "inspect", {
                   .summary = "Heads and perplexity of a language model over ever more tokens",
                   .make = [] { return std::make_unique<AttentionInspect>(); },
               });

}  // namespace
}  // namespace kelvin
