#include "kelvin/retrieval/beta_fit.h"

#include <cmath>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

constexpr int64_t kDegree = 4;

// The items of a block of sets, seen at several temperatures.
struct SeenSets {
  const RetrievalNetwork& network;
  torch::Tensor hidden;
  torch::Tensor scores;
  torch::Tensor labels;

  // ln of the right answers' probabilities, [sets], at inverse temperatures [sets].
  torch::Tensor log_probabilities(const torch::Tensor& betas) const {
    const auto weights = torch::softmax(scores * betas.to(torch::kFloat32).unsqueeze(1), 1);
    const auto logits = network.logits(hidden, weights).to(torch::kFloat64);
    return torch::log_softmax(logits, 1).gather(1, labels.unsqueeze(1)).squeeze(1);
  }
};

// Exponents of the places of a grid between the ends of the range.
torch::Tensor log_grid(const BetaRange& range) {
  constexpr int64_t kPlaces = 33;
  return torch::linspace(std::log(range.least), std::log(range.most), kPlaces, torch::kFloat64);
}

// The best place of the grid, then the best between its neighbours by golden sections.
torch::Tensor best_of_block(const SeenSets& seen, const BetaRange& range) {
  const auto grid = log_grid(range);
  const auto sets = seen.labels.size(0);
  std::vector<torch::Tensor> found;
  for (int64_t i = 0; i < grid.size(0); ++i) {
    found.push_back(seen.log_probabilities(grid[i].exp().expand({sets})));
  }
  const auto best = torch::stack(found, 1).argmax(1);
  auto low = grid.index_select(0, (best - 1).clamp_min(0));
  auto high = grid.index_select(0, (best + 1).clamp_max(grid.size(0) - 1));
  const double golden = (std::sqrt(5.0) - 1) / 2;
  constexpr int kSections = 14;  // a thousandth of the interval
  for (int i = 0; i < kSections; ++i) {
    const auto left = high - golden * (high - low);
    const auto right = low + golden * (high - low);
    const auto is_left = seen.log_probabilities(left.exp()) >= seen.log_probabilities(right.exp());
    high = torch::where(is_left, right, high);
    low = torch::where(is_left, low, left);
  }
  return ((low + high) / 2).exp();
}

torch::Tensor powers_of(const torch::Tensor& entropies) {
  std::vector<torch::Tensor> powers;
  for (int64_t power = kDegree; power >= 0; --power) {
    powers.push_back(entropies.to(torch::kFloat64).pow(power));
  }
  return torch::stack(powers, 1);
}

}  // namespace

BestBetas best_betas(const RetrievalNetwork& network, const RetrievalEvaluation& options,
                     const BetaRange& range) {
  check(range.least > 0 && range.least < range.most && std::isfinite(range.most),
        "best_betas: betas must go up from above 0 to a finite number, got ", range.least, " to ",
        range.most);
  const torch::NoGradGuard no_grad;
  const auto blocks = static_cast<size_t>(block_count(options));
  std::vector<torch::Tensor> entropies(blocks);
  std::vector<torch::Tensor> betas(blocks);
  for_set_blocks(options, network.shape().classes, [&](int64_t block, const RetrievalSets& sets) {
    const auto hidden = network.hidden(sets);
    const SeenSets seen{network, hidden, network.scores(hidden, sets), sets.labels};
    const auto logs = torch::log_softmax(seen.scores.to(torch::kFloat64), 1);
    entropies[static_cast<size_t>(block)] = -(logs.exp() * logs).sum(1);
    betas[static_cast<size_t>(block)] = best_of_block(seen, range);
  });
  BestBetas best{.entropies = torch::cat(entropies), .betas = torch::cat(betas)};
  constexpr double kNear = 1.01;
  best.at_least = (best.betas <= range.least * kNear).sum().item<int64_t>();
  best.at_most = (best.betas >= range.most / kNear).sum().item<int64_t>();
  return best;
}

std::array<double, 5> fitted_beta(const torch::Tensor& entropies, const torch::Tensor& betas) {
  check(entropies.dim() == 1 && entropies.sizes() == betas.sizes() && entropies.size(0) > kDegree,
        "fitted_beta: needs a beta for each of at least five entropies, got ", betas.sizes(),
        " for ", entropies.sizes());
  // Entropies of 0 to 1 keep the powers comparable; the coefficients are scaled back.
  const double scale = entropies.max().item<double>();
  check(std::isfinite(scale) && scale > 0 && torch::isfinite(betas).all().item<bool>(),
        "fitted_beta: entropies must be finite, one of them above 0, and betas finite");
  const auto solved = std::get<0>(torch::linalg_lstsq(
      powers_of(entropies / scale), betas.to(torch::kFloat64).unsqueeze(1), c10::nullopt, "gelsd"));
  std::array<double, 5> coefficients{};
  for (int64_t i = 0; i <= kDegree; ++i) {
    coefficients[static_cast<size_t>(i)] =
        solved[i][0].item<double>() / std::pow(scale, static_cast<double>(kDegree - i));
  }
  return coefficients;
}

double beta_error(const std::array<double, 5>& coefficients, const torch::Tensor& entropies,
                  const torch::Tensor& betas) {
  const auto weights =
      torch::tensor(std::vector<double>(coefficients.begin(), coefficients.end()), torch::kFloat64);
  const auto left = powers_of(entropies).mv(weights) - betas.to(torch::kFloat64);
  return left.square().mean().sqrt().item<double>();
}

}  // namespace kelvin
