#pragma once

#include <filesystem>

#include "kelvin/experiment/compute_api.h"
#include "kelvin/runs/config.h"

namespace kelvin {

// Which registered architecture a file of weights is of.
struct RecogniseRequest {
  static constexpr auto kTask = "recognise";
  using Result = Config;

  std::filesystem::path weights = {};
};

// `model.name` and those settings of "model" that are not the usual ones, told by the names and
// shapes in the file.  Who looks on is told which and why.  An Error if no architecture fits, or
// more than one.
Config recognise(const RecogniseRequest& request, const RunContext& context);

}  // namespace kelvin
