#include "kelvin/measures/cached_probes.h"

#include <torch/types.h>

#include <algorithm>
#include <limits>

#include "kelvin/core/check.h"
#include "kelvin/numerics/logistic_regression.h"

namespace kelvin {
namespace {

// The last fifth is held out; the stream has no order.
int64_t held_out_of(int64_t samples) { return std::max<int64_t>(1, samples / 5); }

torch::Tensor hits_of(const LinearClassifier& probe, const torch::Tensor& features,
                      const torch::Tensor& labels) {
  return probe.scores(features).argmax(1) == labels;
}

// What features are divided by.  Those that do nothing but round, next to their own mean or to the
// liveliest feature of the layer, are dead, at any scale of the layer: they become 0.
torch::Tensor safe_std_dev(const torch::Tensor& features, const torch::Tensor& mean) {
  constexpr double kRounding = 1e-6;  // of a float32 mean
  constexpr double kLeastFraction = 1e-8;
  const auto std_dev = features.std(0, /*unbiased=*/false);
  const auto least = torch::maximum(kRounding * mean.abs(), kLeastFraction * std_dev.max());
  return std_dev.masked_fill(std_dev <= least, std::numeric_limits<double>::infinity());
}

// The fits of one layer, from strong penalties to weak ones, each from the one before.
class PenaltyChoice {
 public:
  PenaltyChoice(const torch::Tensor& features, const torch::Tensor& labels, int64_t classes,
                const ProbeOptions& options)
      : features_(features), labels_(labels), classes_(classes), options_(options) {}

  // Fitted on all samples, with the penalty that is best on those held out.
  LinearClassifier best() {
    const auto samples = labels_.size(0);
    const auto used = samples - held_out_of(samples);
    if (options_.l2.size() == 1 || used < 1) {
      l2_ = options_.l2.front();
      return LogisticRegression(features_, labels_, classes_).fit(solver(l2_));
    }
    LogisticRegression problem(features_.narrow(0, 0, used), labels_.narrow(0, 0, used), classes_);
    const auto start = choose(problem, used);
    problem.extend_to(features_, labels_);
    return problem.fit(solver(l2_), &start);
  }
  double l2() const { return l2_; }

 private:
  LinearClassifier choose(const LogisticRegression& problem, int64_t used) {
    const auto held_out = labels_.size(0) - used;
    LinearClassifier best;
    LinearClassifier last;
    int64_t most = -1;
    for (const double l2 : options_.l2) {
      last = problem.fit(solver(l2), most < 0 ? nullptr : &last);
      const auto right =
          hits_of(last, features_.narrow(0, used, held_out), labels_.narrow(0, used, held_out))
              .sum()
              .item<int64_t>();
      if (right <= most) continue;  // of equals the strongest
      most = right;
      best = last;
      l2_ = l2;
    }
    return best;
  }

  LogisticRegressionOptions solver(double l2) const {
    return {.l2 = l2, .max_iterations = options_.max_iterations, .tolerance = options_.tolerance};
  }

  const torch::Tensor& features_;
  const torch::Tensor& labels_;
  int64_t classes_;
  const ProbeOptions& options_;
  double l2_ = 0;
};

}  // namespace

void CachedProbes::add(const Record& record, Kept& kept) {
  classes_ = record.classes;
  for (const auto& layer : record.layers) {
    const auto is_it = [&](const Layer& known) { return known.name == layer.name; };
    if (std::none_of(layers_.begin(), layers_.end(), is_it)) {
      layers_.push_back({layer.name, tap_text(layer, options_.tap)});
    }
    kept.features[layer.name].push_back(pooled_rows(layer, options_.tap, options_.pool));
  }
  kept.labels.push_back(record.labels);
}

void CachedProbes::append(const Kept& theirs, Kept& ours) {
  const auto add = [](const Batches& from, Batches& to) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (const auto& [layer, batches] : theirs.features) add(batches, ours.features[layer]);
  add(theirs.labels, ours.labels);
}

void CachedProbes::merge(const Probes& other) {
  const auto& theirs = static_cast<const CachedProbes&>(other);
  if (layers_.empty()) layers_ = theirs.layers_;
  classes_ = std::max(classes_, theirs.classes_);
  append(theirs.train_, train_);
  append(theirs.test_, test_);
}

NamedTensors CachedProbes::state() const {
  NamedTensors tensors;
  for (const auto& [split, kept] : {std::pair{"train", &train_}, {"test", &test_}}) {
    for (const auto& [layer, batches] : kept->features) {
      tensors[std::string(split) + "/" + layer] = torch::cat(batches);
    }
    if (!kept->labels.empty()) {
      tensors[std::string(split) + "_labels"] = torch::cat(kept->labels);
    }
  }
  return tensors;
}

bool CachedProbes::saw_both_splits() const {
  return !train_.labels.empty() && !test_.labels.empty();
}

std::vector<ProbeResult> CachedProbes::results() const {
  const auto train_labels = torch::cat(train_.labels);
  const auto test_labels = torch::cat(test_.labels);
  check_enough_samples(train_labels.size(0), classes_);
  std::vector<ProbeResult> results;
  for (const auto& layer : layers_) results.push_back(probe(layer, train_labels, test_labels));
  return results;
}

ProbeResult CachedProbes::probe(const Layer& layer, const torch::Tensor& train_labels,
                                const torch::Tensor& test_labels) const {
  const auto rows = [&](const Kept& kept, const torch::Tensor& labels) {
    const auto found = kept.features.find(layer.name);
    auto all = found == kept.features.end() ? torch::Tensor() : torch::cat(found->second);
    check(all.defined() && all.size(0) == labels.size(0), "linear_probe: layer '", layer.name,
          "' must be in every record of both splits");
    return all;
  };
  auto train = rows(train_, train_labels);
  const auto mean = train.mean(0);
  const auto std_dev = safe_std_dev(train, mean);
  train.sub_(mean).div_(std_dev);

  PenaltyChoice choice(train, train_labels, classes_, options_);
  const auto classifier = choice.best();
  const auto test = rows(test_, test_labels).sub_(mean).div_(std_dev);
  const auto weight = classifier.weight / std_dev;
  ProbeResult result{
      .layer = layer.name,
      .hits = hits_of(classifier, test, test_labels),
      .definition = {{"protocol", "diagnose"},
                     {"probe", "multinomial logistic regression, L-BFGS"},
                     {"features", "standardised, maps averaged to pool x pool, tokens averaged"},
                     {"pool", options_.pool},
                     {"width", train.size(1)},
                     {"tap", layer.tap},
                     {"l2_candidates", options_.l2},
                     {"l2", choice.l2()},
                     {"max_iterations", options_.max_iterations},
                     {"tolerance", options_.tolerance},
                     {"converged", classifier.converged},
                     {"precision", "float32 features, float64 loss"},
                     {"train_samples", train_labels.size(0)},
                     {"samples", test_labels.size(0)}},
      .chance = chance_of(test_labels),
      .weight = weight,
      .bias = classifier.bias - weight.matmul(mean)};
  if (options_.l2.size() > 1) {
    result.definition["held_out"] = "a random fifth of the training samples, to choose l2";
  }
  return result;
}

int64_t CachedProbes::memory(const Record& example, int64_t samples,
                             const MeasureContext& known) const {
  int64_t all = 0;
  int64_t widest = 0;
  for (const auto& layer : example.layers) {
    const auto width = pooled_rows(layer, options_.tap, options_.pool).size(1);
    all += width;
    widest = std::max(widest, width);
  }
  // One layer is joined and standardised; its products with themselves are float64, three times.
  // A step of its fit has scores, their logarithms, probabilities, residuals and what they are to
  // be.
  constexpr int64_t kOfFit = 5;
  const auto classes = std::max(known.most_classes, example.classes);
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  constexpr auto kDouble = static_cast<int64_t>(sizeof(double));
  return (all + widest + kOfFit * classes) * samples * kFloat + 3 * widest * widest * kDouble;
}

}  // namespace kelvin
