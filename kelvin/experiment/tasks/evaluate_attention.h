#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/experiment/compute_api.h"

namespace kelvin {

// Attention weights of the items of highest priority, the highest first, a row for each set.
struct AttentionRows {
  std::string attention = {};  // the map
  int64_t items = 0;           // of each set
  std::vector<std::vector<double>> rows = {};
};

struct EvaluatedAttention {
  Readings readings = {};
  std::vector<AttentionRows> heat = {};  // of the first network of each map
};

// Networks for max retrieval on sets of many sizes, see kelvin/retrieval/evaluation.h.
struct EvaluateAttentionRequest {
  static constexpr auto kTask = "evaluate_attention";
  using Result = EvaluatedAttention;

  std::vector<std::filesystem::path> networks = {};  // files, or folders of them
  std::vector<int64_t> sizes = {16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
  int64_t sets = 1024;  // of each size, the same for all networks and maps
  int64_t seed = 0;     // of the sets
  // Maps that take the place of softmax in the networks trained with it, as map_of_text has them.
  std::vector<std::string> maps = {"adaptive"};
  // A file of coefficients, see load_beta(): adds "adaptive:fitted"; empty: none.
  std::filesystem::path beta = {};
};

// Of each network, map and size retrieval_accuracy, attention_entropy_nats, attention_top_weight
// and attention_right_weight; of each network and size the head's logit_spread, logit_spread_bound
// by spectral norms, what the largest spread allows (attention_top_weight_bound,
// dispersion_length), and dispersion_violations.
EvaluatedAttention evaluate_attention(const EvaluateAttentionRequest& request,
                                      const RunContext& context);

}  // namespace kelvin
