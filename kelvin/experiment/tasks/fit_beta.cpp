#include "kelvin/experiment/tasks/fit_beta.h"

#include <torch/torch.h>

#include <array>
#include <cmath>
#include <limits>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/seeds.h"
#include "kelvin/experiment/retrieval/retrieval_file.h"
#include "kelvin/ops/adaptive_softmax.h"
#include "kelvin/retrieval/beta_fit.h"

namespace kelvin {
namespace {

using Coefficients = std::array<double, 5>;

struct SizedBetas {
  int64_t size = 0;
  std::vector<torch::Tensor> entropies = {};
  std::vector<torch::Tensor> betas = {};
  int64_t at_least = 0;
  int64_t at_most = 0;
};

std::vector<SizedBetas> betas_by_size(const FitBetaRequest& request, const RunContext& context) {
  std::vector<SizedBetas> all;
  for (const auto size : request.sizes) all.push_back({.size = size});
  const auto files = retrieval_files(request.networks);
  int64_t done = 0;
  for (const auto& file : files) {
    const auto trained = load_retrieval(file);
    check(trained.settings.attention == "softmax" && trained.settings.temperature == 1,
          file.string(),
          ": an adaptive temperature is fitted to networks trained with softmax at "
          "temperature 1");
    for (auto& sized : all) {
      check(!context.should_stop(), "stopped at ", file.filename().string(), "; nothing is fitted");
      const auto seed = derive_seed(static_cast<uint64_t>(request.seed),
                                    "fit " + std::to_string(trained.settings.seed));
      const auto best =
          best_betas(trained.network, {.size = sized.size, .sets = request.sets, .seed = seed},
                     {.least = request.least, .most = request.most});
      sized.entropies.push_back(best.entropies);
      sized.betas.push_back(best.betas);
      sized.at_least += best.at_least;
      sized.at_most += best.at_most;
      context.report_progress({.phase = "fit " + file.stem().string(),
                               .done = ++done,
                               .total = static_cast<int64_t>(files.size() * all.size())});
    }
  }
  return all;
}

// Where beta is largest, and from where on it is 1 again, as published: past the peak it falls.
struct BetaCourse {
  double peak = 0;
  double largest = 0;
  double off = 0;  // infinite if it never is within what can be asked
};

BetaCourse course_of(const Coefficients& coefficients) {
  constexpr double kMostEntropy = 20;  // of half a billion equal logits
  constexpr int64_t kPlaces = 200'001;
  const auto entropies = torch::linspace(0, kMostEntropy, kPlaces, torch::kFloat64);
  const auto betas = adaptive_beta(entropies, {.coefficients = coefficients});
  const auto peak = betas.argmax().item<int64_t>();
  BetaCourse course{.peak = entropies[peak].item<double>(),
                    .largest = betas[peak].item<double>(),
                    .off = std::numeric_limits<double>::infinity()};
  const auto is_off = (betas <= 1).logical_and(entropies > course.peak);
  if (is_off.any().item<bool>()) {
    course.off = entropies[is_off.to(torch::kInt64).argmax()].item<double>();
  }
  return course;
}

void add_course(Readings& readings, const std::string& polynomial,
                const Coefficients& coefficients) {
  const auto course = course_of(coefficients);
  const auto add = [&](const char* name, double value, const char* statistic) {
    if (!std::isfinite(value)) return;
    readings.push_back({.name = name,
                        .value = value,
                        .definition = {{"polynomial", polynomial},
                                       {"coefficients", coefficients},
                                       {"statistic", statistic},
                                       {"past_the_peak", "fall"}}});
  };
  add("beta_peak_entropy", course.peak, "entropy in nats where beta is largest");
  add("beta_peak", course.largest, "largest beta");
  add("beta_off_entropy", course.off, "entropy in nats beyond the peak from which on beta is 1");
}

std::string toml_of(const Coefficients& coefficients, const FitBetaRequest& request,
                    size_t networks, double error) {
  Config config;
  config.set("beta.coefficients", coefficients);
  config.set("beta.sizes", request.sizes);
  config.set("beta.sets", request.sets);
  config.set("beta.networks", networks);
  config.set("beta.seed", request.seed);
  config.set("beta.least", request.least);
  config.set("beta.most", request.most);
  config.set("beta.error", error);
  return "# beta of an adaptive softmax as a polynomial in the entropy in nats, the highest power "
         "first.\n" +
         config.to_toml();
}

}  // namespace

Readings fit_beta(const FitBetaRequest& request, const RunContext& context) {
  const torch::NoGradGuard no_grad;
  check(!request.sizes.empty() && request.sets >= 1,
        "fit of beta: needs at least one size and one set of each");
  const auto sized = betas_by_size(request, context);
  std::vector<torch::Tensor> entropies;
  std::vector<torch::Tensor> betas;
  Readings readings;
  for (const auto& each : sized) {
    entropies.push_back(torch::cat(each.entropies));
    betas.push_back(torch::cat(each.betas));
    const Definition meaning = {{"n", each.size},
                                {"sets", betas.back().size(0)},
                                {"range", {request.least, request.most}},
                                {"at_the_least", each.at_least},
                                {"at_the_most", each.at_most},
                                {"statistic", "mean over sets"}};
    readings.push_back(
        {.name = "best_beta", .value = betas.back().mean().item<double>(), .definition = meaning});
    readings.push_back({.name = "attention_entropy_nats",
                        .value = entropies.back().mean().item<double>(),
                        .definition = meaning});
  }
  const auto all_entropies = torch::cat(entropies);
  const auto all_betas = torch::cat(betas);
  const auto coefficients = fitted_beta(all_entropies, all_betas);
  const auto error = beta_error(coefficients, all_entropies, all_betas);
  for (size_t i = 0; i < coefficients.size(); ++i) {
    const auto power = static_cast<int64_t>(coefficients.size() - 1 - i);
    readings.push_back({.name = "beta_coefficient",
                        .value = coefficients[i],
                        .index = power,
                        .definition = {{"of", "entropy in nats to this power (index)"},
                                       {"sizes", request.sizes},
                                       {"sets", all_betas.size(0)}}});
  }
  readings.push_back({.name = "beta_error",
                      .value = error,
                      .definition = {{"statistic", "root mean square of beta less the polynomial"},
                                     {"sets", all_betas.size(0)}}});
  add_course(readings, "published", AdaptiveSoftmaxOptions().coefficients);
  add_course(readings, "fitted", coefficients);
  if (!request.output.empty()) {
    write_file_atomically(request.output, toml_of(coefficients, request,
                                                  retrieval_files(request.networks).size(), error));
  }
  return readings;
}

namespace {

const bool fit_beta_registered = add_task(fit_beta);

}  // namespace
}  // namespace kelvin
