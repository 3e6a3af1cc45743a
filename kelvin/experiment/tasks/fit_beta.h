#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/experiment/compute_api.h"

namespace kelvin {

// The polynomial of an adaptive temperature, fitted to networks for max retrieval; see
// kelvin/retrieval/beta_fit.h.
struct FitBetaRequest {
  static constexpr auto kTask = "fit_beta";
  using Result = Readings;

  std::vector<std::filesystem::path> networks = {};  // files, or folders of them
  std::vector<int64_t> sizes = {16, 32, 64, 128, 256, 512, 1024};
  int64_t sets = 256;   // of each size, and of each network
  int64_t seed = 1;     // of the sets; evaluation has another
  double least = 0.25;  // range of beta
  double most = 10;
  std::filesystem::path output = {};  // a TOML file for the coefficients; empty: none
};

// Readings beta_coefficient with the power as index, beta_error, the root mean square of what the
// polynomial leaves, best_beta as mean by size, and the entropies where the published polynomial
// and this one are largest and where they are 1 again.
Readings fit_beta(const FitBetaRequest& request, const RunContext& context);

}  // namespace kelvin
