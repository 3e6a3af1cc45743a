#include "kelvin/experiment/tasks/evaluate_attention.h"

#include <torch/torch.h>

#include <set>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/experiment/retrieval/retrieval_file.h"
#include "kelvin/numerics/dispersion.h"
#include "kelvin/ops/adaptive_softmax.h"
#include "kelvin/retrieval/evaluation.h"

namespace kelvin {
namespace {

constexpr auto kSoftmax = "softmax";

// The network's own map, and for softmax those that take its place.
std::vector<NamedMap> maps_of(const TrainedRetrieval& trained,
                              const std::vector<NamedMap>& in_place_of_softmax) {
  const auto& settings = trained.settings;
  std::vector<NamedMap> maps = {{.name = settings.attention, .map = settings.map}};
  if (settings.attention != kSoftmax) return maps;
  for (const auto& [name, map] : in_place_of_softmax) {
    maps.push_back(
        {.name = name,
         .map = [map = map, divisor = settings.temperature](const torch::Tensor& scores) {
           return map(divisor == 1 ? scores : scores / divisor);
         }});
  }
  return maps;
}

std::vector<NamedMap> maps_in_place_of_softmax(const EvaluateAttentionRequest& request) {
  std::vector<NamedMap> maps;
  for (const auto& text : request.maps) {
    maps.push_back({.name = text, .map = map_of_text(text, "--maps")});
  }
  if (request.beta.empty()) return maps;
  const AdaptiveSoftmaxOptions options{.coefficients = load_beta(request.beta),
                                       .past_the_peak = PastThePeak::hold};
  maps.push_back({.name = "adaptive:fitted", .map = [options](const torch::Tensor& scores) {
                    return adaptive_softmax(scores, options);
                  }});
  return maps;
}

std::vector<std::vector<double>> rows_of(const torch::Tensor& heat) {
  std::vector<std::vector<double>> rows;
  const auto numbers = heat.to(torch::kFloat64).contiguous();
  const auto* begin = numbers.data_ptr<double>();
  for (int64_t row = 0; row < numbers.size(0); ++row, begin += numbers.size(1)) {
    rows.emplace_back(begin, begin + numbers.size(1));
  }
  return rows;
}

// What all readings of a network on one size say.
Definition definition_of(const RetrievalSettings& settings, int64_t size,
                         const EvaluateAttentionRequest& request) {
  return {{"task", "max retrieval"},
          {"n", size},
          {"sets", request.sets},
          {"sets_seed", request.seed},
          {"seed", settings.seed},
          {"trained_with", settings.attention},
          {"trained_steps", settings.training.steps},
          {"trained_sizes", {settings.training.least, settings.training.most}},
          {"width", settings.shape.width},
          {"temperature", settings.temperature}};
}

void add_retrieval_readings(Readings& readings, const std::vector<NamedMap>& maps,
                            const RetrievalMeasured& measured, const Definition& definition) {
  for (size_t m = 0; m < maps.size(); ++m) {
    auto meaning = definition;
    meaning["attention"] = maps[m].name;
    const auto add = [&](const char* name, double value) {
      readings.push_back({.name = name, .value = value, .definition = meaning});
    };
    const auto& quality = measured.qualities[m];
    add("retrieval_accuracy", quality.accuracy);
    add("attention_entropy_nats", quality.entropy);
    add("attention_top_weight", quality.top_weight);
    add("attention_right_weight", quality.right_weight);
  }
  const auto add = [&](const char* name, const char* statistic, double value) {
    auto meaning = definition;
    meaning["statistic"] = statistic;
    readings.push_back({.name = name, .value = value, .definition = meaning});
  };
  add("logit_spread", "mean over sets", measured.spread);
  add("logit_spread", "largest of a set", measured.largest_spread);
  add("logit_spread_bound", "mean over the sets shown", measured.spread_bound);
  add("logit_spread_over_bound", "largest of the sets shown", measured.most_of_spread_bound);
  const auto n = definition.at("n").get<double>();
  add("attention_top_weight_bound", "by the largest spread of a set",
      sharp_bounds(n, measured.largest_spread).high);
  add("dispersion_length", "by the largest spread of a set",
      dispersion_length(measured.largest_spread));
  add("dispersion_violations", "sets beyond a bound", static_cast<double>(measured.violations));
}

}  // namespace

EvaluatedAttention evaluate_attention(const EvaluateAttentionRequest& request,
                                      const RunContext& context) {
  const torch::NoGradGuard no_grad;
  check(!request.sizes.empty(), "max retrieval: needs at least one size");
  const auto in_place_of_softmax = maps_in_place_of_softmax(request);
  const auto files = retrieval_files(request.networks);
  EvaluatedAttention result;
  std::set<std::string> with_heat;
  int64_t done = 0;
  const auto total = static_cast<int64_t>(files.size() * request.sizes.size());
  for (const auto& file : files) {
    const auto trained = load_retrieval(file);
    const auto maps = maps_of(trained, in_place_of_softmax);
    const bool has_heat = with_heat.insert(trained.settings.attention).second;
    for (const auto size : request.sizes) {
      check(!context.should_stop(), "stopped at ", file.filename().string(), "; nothing is shown");
      const auto measured = evaluate_retrieval(
          trained.network, maps,
          {.size = size,
           .sets = request.sets,
           .seed = derive_seed(static_cast<uint64_t>(request.seed), "retrieval")});
      add_retrieval_readings(result.readings, maps, measured,
                             definition_of(trained.settings, size, request));
      for (size_t m = 0; has_heat && m < maps.size(); ++m) {
        result.heat.push_back({.attention = maps[m].name,
                               .items = size,
                               .rows = rows_of(measured.qualities[m].heat)});
      }
      context.report_progress(
          {.phase = "evaluate " + file.stem().string(), .done = ++done, .total = total});
    }
  }
  return result;
}

namespace {

const bool evaluate_attention_registered = add_task(evaluate_attention);

}  // namespace
}  // namespace kelvin
