#pragma once

#include <cstdint>
#include <string>

#include "kelvin/retrieval/network.h"
#include "kelvin/retrieval/training.h"
#include "kelvin/runs/config.h"

namespace kelvin {

// How a network for max retrieval is trained: the section "retrieval" of a config.  Everything is
// checked.
struct RetrievalSettings {
  int64_t seed = 0;  // of the weights and of the sets
  RetrievalShape shape;
  RetrievalTraining training;
  std::string attention = "softmax";  // its settings begin with attention_
  double temperature = 1;             // divides the scores, besides the root of the width
  ScoreMap map;                       // of the scores, the temperature included
  Config resolved;                    // every key that exists, with its value

  static RetrievalSettings from(const Config& config);

  // Fresh weights, drawn from the seed.
  RetrievalNetwork network() const;
  uint64_t sets_seed() const;
};

// A map to the simplex by its name and settings, as "top_k" or "adaptive:past_the_peak=hold" or
// "ssmax:s=0.5:..."; `where` opens messages.
ScoreMap map_of_text(const std::string& text, const std::string& where);

}  // namespace kelvin
