#include <fmt/format.h>

#include <algorithm>

#include "app/cli/common_flags.h"
#include "app/cli/compute.h"
#include "app/cli/study_output.h"
#include "app/verbs/attention.h"
#include "kelvin/experiment/tasks/evaluate_attention.h"

namespace kelvin {
namespace {

// Every third size of 16, 32, ... is enough to see weights thin out.
bool is_shown_size(int64_t items, const std::vector<int64_t>& sizes) {
  constexpr int64_t kEvery = 3;
  const auto place = std::find(sizes.begin(), sizes.end(), items) - sizes.begin();
  return place % kEvery == 0 || items == sizes.back();
}

std::vector<HeatMapFigure> heat_maps(const std::vector<AttentionRows>& all,
                                     const std::vector<int64_t>& sizes) {
  std::vector<HeatMapFigure> figures;
  for (const auto& each : all) {
    if (!is_shown_size(each.items, sizes)) continue;
    figures.push_back({.title = fmt::format("Weights by {}, n = {}", each.attention, each.items),
                       .x_label = "items by priority, the highest first",
                       .y_label = "sets",
                       .rows = each.rows});
  }
  return figures;
}

class AttentionEvaluate : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    command
        .add_option("NETWORKS", networks_, "files of 'kelvin attention train', or folders of them")
        ->type_name("")
        ->required();
    const auto option = [&](const char* flag, std::string& text, const char* help,
                            const char* type) {
      command.add_option(flag, text, help)->type_name(type);
    };
    option("--sizes", sizes_, "items of a set (default: 16,32,...,16384)", "A,B");
    option("--sets", sets_, "of each size (default: 1024)", "N");
    option("--seed", seed_, "of the sets (default: 0)", "N");
    option("--maps", maps_,
           "in place of softmax at inference, as adaptive,top_k:k=4 (default: adaptive)",
           "A,B of <softmaxes>");
    option("--beta", beta_, "a file of 'kelvin attention fit': adds adaptive:fitted", "FILE");
    output_.declare(command);
  }

  int run() override {
    output_.check_paths();
    EvaluateAttentionRequest request{.networks = {networks_.begin(), networks_.end()},
                                     .sets = whole_number_of("--sets", sets_),
                                     .seed = whole_number_of("--seed", seed_),
                                     .maps = names_of("--maps", maps_),
                                     .beta = beta_};
    if (!sizes_.empty()) request.sizes = whole_numbers_of("--sizes", sizes_);
    EvaluatedAttention evaluated;
    const auto code = compute("attention evaluate", common(),
                              [&](const ComputeLibrary& library, const RunContext& context) {
                                evaluated = library.run(request, context);
                              });
    if (code != kSuccess) return code;
    const auto heat = heat_maps(evaluated.heat, request.sizes);
    output_.show(
        evaluated.readings,
        [&](const Readings& readings) { return retrieval_study(readings, heat); }, common());
    return kSuccess;
  }

 private:
  std::vector<std::string> networks_;
  std::string sizes_;
  std::string sets_ = "1024";
  std::string seed_ = "0";
  std::string maps_ = "adaptive";
  std::string beta_;
  StudyOutput output_;
};

const bool attention_evaluate_registered = attention_subcommands().add(
    "evaluate", {
                    .summary = "Their accuracy, entropy and weights on up to thousands of items",
                    .make = [] { return std::make_unique<AttentionEvaluate>(); },
                });

}  // namespace
}  // namespace kelvin
