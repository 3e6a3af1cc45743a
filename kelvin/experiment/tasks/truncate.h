#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kelvin/experiment/compute_api.h"

namespace kelvin {

// Where to end a network, and what becomes of it: that of a run or, if none is given, of the
// weights in `init.pretrained`.
struct TruncateRequest {
  static constexpr auto kTask = "truncate";
  using Result = nlohmann::ordered_json;

  Config settings = {};  // as of MeasureRequest; those of the probes
  std::filesystem::path run = {};
  std::string layer = {};             // the last to keep; empty: the first that is good enough
  std::filesystem::path output = {};  // a new safetensors file; empty: nothing is written
};

// The first layer, counted from 0, whose probe reaches `threshold` times the accuracy of the last
// one's; an Error if that is 0, which every layer reaches.
size_t sufficient_place(const std::vector<double>& accuracies, double threshold);

// Ends a network after the first layer whose linear probe is nearly as good as that of its last
// layer, or after the one that the request names, and puts the probe behind it.  Returns what it
// gives and what it costs beside the whole network.  An Error if the request asks for other probes
// than those of outputs by protocol diagnose, or for OOD data.
nlohmann::ordered_json truncate(const TruncateRequest& request, const RunContext& context);

}  // namespace kelvin
