#include "kelvin/measures/rank_readings.h"

#include <torch/types.h>

#include <array>

#include "kelvin/core/check.h"
#include "kelvin/math/spectrum.h"

namespace kelvin {
namespace {

struct Rank {
  const char* name;
  const char* formula;
  double (*value)(const torch::Tensor&);
};

constexpr std::array<Rank, 4> kRanks = {
    {{"effective_rank", "exp(-sum p_i ln p_i), p_i = sigma_i / sum sigma", effective_rank},
     {"rankme", "exp(-sum p_i ln p_i), p_i = sigma_i / sum sigma + 1e-7", rankme},
     {"stable_rank", "sum sigma_i^2 / sigma_1^2", stable_rank},
     {"participation_ratio", "(sum sigma_i^2)^2 / sum sigma_i^4", participation_ratio}}};

}  // namespace

Readings rank_readings(const torch::Tensor& singular_values, const Reading& like,
                       const std::string& prefix) {
  check(singular_values.dim() == 1 && singular_values.size(0) > 0,
        "rank_readings: needs a list of singular values, got ", singular_values.sizes());
  check(torch::isfinite(singular_values).all().item<bool>(),
        "rank_readings: singular values must be finite, got a NaN or an infinity");
  if (singular_values.max().item<double>() <= 0) return {};
  Readings readings;
  for (const auto& rank : kRanks) {
    auto reading = like;
    reading.name = prefix + rank.name;
    reading.value = rank.value(singular_values);
    reading.definition["formula"] = rank.formula;
    readings.push_back(std::move(reading));
  }
  return readings;
}

}  // namespace kelvin
