#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/experiment/compute_api.h"
#include "kelvin/experiment/tasks/evaluate_attention.h"

namespace kelvin {

struct InspectedLanguage {
  Readings readings = {};
  // Attention weights of the heads with the least and the most entropy, a row for each query; each
  // row ends with the token itself.
  std::vector<AttentionRows> heat = {};
  std::string written = {};  // how the model goes on with the prompt
};

// The attention of a language model over a text, see kelvin/language/, and its perplexity with
// softmax and with other maps in its place.
struct InspectLanguageRequest {
  static constexpr auto kTask = "inspect_language";
  using Result = InspectedLanguage;

  std::filesystem::path model = {};      // see read_decoder()
  std::filesystem::path tokenizer = {};  // see read_tokenizer()
  std::filesystem::path text = {};       // UTF-8; may be empty if there is a prompt
  int64_t tokens = 4096;                 // at most so many of the text, from its begin
  int64_t window = 0;  // tokens of one pass; 0: four times what the model was trained on
  std::vector<std::string> maps = {"adaptive"};  // in place of softmax, as map_of_text has them
  double gamma = 1e-3;                           // of the ranks
  std::string prompt = {};
  int64_t generate = 0;  // tokens to go on with behind the prompt, each the likeliest
};

// Of each map `perplexity` over ranges of positions and up to and beyond the trained context, and
// of each range, layer and head logit_spread, logit_spread_bound, attention_entropy_nats,
// attention_top_weight and dispersion_violations; with softmax of each head on the first tokens
// attention_logits_rank and attention_shares_rank.
InspectedLanguage inspect_language(const InspectLanguageRequest& request,
                                   const RunContext& context);

}  // namespace kelvin
