#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/math/logistic_regression.h"
#include "kelvin/measures/effective_depth.h"
#include "kelvin/measures/measure.h"

namespace kelvin {
namespace {

// Features of one layer on one split, batch by batch.
using Batches = std::vector<torch::Tensor>;

// One population: the dataset trained on, or a foreign one.
struct Population {
  int64_t classes = 0;
  std::map<std::string, Batches> train;  // by layer
  std::map<std::string, Batches> test;
  Batches train_labels;
  Batches test_labels;
};

struct ProbeOptions {
  int64_t pool =
      2;  // feature maps are averaged to pool x pool before they are flattened; tokens all
  int64_t max_iterations = 100;
  double tolerance = 1e-4;  // of the gradient; below it accuracies no longer change
  double threshold = 0.99;  // share of the last layer's accuracy that counts as reaching it
  // Candidates, chosen between on the last fifth of the training features; features are
  // standardised.
  std::vector<double> l2 = {1e-1, 1e-2, 1e-3};
};

torch::Tensor pooled(const torch::Tensor& output, int64_t pool) {
  if (output.dim() == 3) return output.mean(1).to(torch::kFloat32);  // over tokens
  if (output.dim() < 4) return output.flatten(1).to(torch::kFloat32);
  const auto size = std::min({pool, output.size(2), output.size(3)});
  return torch::adaptive_avg_pool2d(output, {size, size}).flatten(1).to(torch::kFloat32);
}

double accuracy(const LinearClassifier& probe, const torch::Tensor& features,
                const torch::Tensor& labels) {
  const auto right = (probe.scores(features).argmax(1) == labels).sum().item<double>();
  return right / static_cast<double>(labels.size(0));
}

// A linear classifier on every layer's frozen features, trained to convergence.
class LinearProbe : public Measure {
 public:
  explicit LinearProbe(Settings& settings) {
    settings.read("pool", options_.pool);
    settings.read("max_iterations", options_.max_iterations);
    settings.read("tolerance", options_.tolerance);
    settings.read("threshold", options_.threshold);
    settings.read("l2", options_.l2);
    check(options_.pool >= 1, settings.full_name("pool"), ": must be at least 1, got ",
          options_.pool);
    check(options_.max_iterations >= 1, settings.full_name("max_iterations"),
          ": must be at least 1, got ", options_.max_iterations);
    check(options_.tolerance > 0, settings.full_name("tolerance"), ": must be above 0, got ",
          options_.tolerance);
    check(options_.threshold > 0 && options_.threshold <= 1, settings.full_name("threshold"),
          ": must be in (0, 1], got ", options_.threshold);
    check(!options_.l2.empty(), settings.full_name("l2"), ": must name at least one value");
    for (const double l2 : options_.l2) {
      check(l2 >= 0 && std::isfinite(l2), settings.full_name("l2"),
            ": must be finite and not below 0, got ", l2);
    }
    // From strong to weak, so that each fit starts close to its solution.
    std::sort(options_.l2.rbegin(), options_.l2.rend());
  }

  Needs needs() const override { return {.train_split = true, .layers = true, .ood = true}; }

  void update(const Record& record) override {
    auto& population = populations_[record.ood];
    population.classes = record.classes;
    const bool is_train = record.split == Split::train;
    for (const auto& layer : record.layers) {
      if (std::find(layers_.begin(), layers_.end(), layer.name) == layers_.end()) {
        layers_.push_back(layer.name);
      }
      (is_train ? population.train : population.test)[layer.name].push_back(
          pooled(layer.output, options_.pool));
    }
    (is_train ? population.train_labels : population.test_labels).push_back(record.labels);
  }

  void merge(const Measure& other) override {
    const auto& theirs = static_cast<const LinearProbe&>(other);
    if (layers_.empty()) layers_ = theirs.layers_;
    for (const auto& [name, population] : theirs.populations_) {
      auto& ours = populations_[name];
      ours.classes = population.classes;
      for (const auto& [layer, batches] : population.train) append(ours.train[layer], batches);
      for (const auto& [layer, batches] : population.test) append(ours.test[layer], batches);
      append(ours.train_labels, population.train_labels);
      append(ours.test_labels, population.test_labels);
    }
  }

  NamedTensors state() const override {
    NamedTensors tensors;
    for (const auto& [name, population] : populations_) {
      for (const auto& [layer, batches] : population.train) {
        tensors[name + "/train/" + layer] = torch::cat(batches);
      }
      for (const auto& [layer, batches] : population.test) {
        tensors[name + "/test/" + layer] = torch::cat(batches);
      }
      if (!population.train_labels.empty()) {
        tensors[name + "/train_labels"] = torch::cat(population.train_labels);
      }
      if (!population.test_labels.empty()) {
        tensors[name + "/test_labels"] = torch::cat(population.test_labels);
      }
    }
    return tensors;
  }

  Readings compute() const override {
    check(!layers_.empty(), "linear_probe: no layers were recorded");
    Readings readings;
    for (const auto& [name, population] : populations_) {
      check(!population.train_labels.empty() && !population.test_labels.empty(),
            "linear_probe: needs both splits of ", name.empty() ? "the trained dataset" : name);
      std::vector<double> accuracies;
      for (const auto& layer : layers_) {
        check(population.train.contains(layer) && population.test.contains(layer),
              "linear_probe: layer '", layer, "' is not recorded on both splits of ",
              name.empty() ? "the trained dataset" : name);
        auto reading = probe(population, layer);
        reading.ood = name;
        accuracies.push_back(reading.value);
        readings.push_back(std::move(reading));
      }
      if (name.empty()) {
        add_kappa(readings, accuracies);
      } else {
        add_rho(readings, accuracies, name);
      }
    }
    return readings;
  }

 private:
  static void append(Batches& ours, const Batches& theirs) {
    ours.insert(ours.end(), theirs.begin(), theirs.end());
  }

  LogisticRegressionOptions solver(double l2) const {
    return {.l2 = l2, .max_iterations = options_.max_iterations, .tolerance = options_.tolerance};
  }

  Reading probe(const Population& population, const std::string& layer) const {
    auto train = torch::cat(population.train.at(layer));
    auto test = torch::cat(population.test.at(layer));
    const auto train_labels = torch::cat(population.train_labels);
    const auto test_labels = torch::cat(population.test_labels);
    const auto mean = train.mean(0);
    auto deviation = train.std(0, /*unbiased=*/false);
    deviation.masked_fill_(deviation < 1e-8, 1);  // a dead feature stays 0
    train = (train - mean) / deviation;
    test = (test - mean) / deviation;

    const auto [l2, start] = choose_l2(train, train_labels, population.classes);
    const auto classifier =
        fit_logistic_regression(train, train_labels, population.classes, solver(l2), &start);
    return {
        .name = "probe_accuracy",
        .value = accuracy(classifier, test, test_labels),
        .layer = layer,
        .split = "test",
        .definition = {{"probe", "multinomial logistic regression, L-BFGS"},
                       {"features", "standardised, maps averaged to pool x pool, tokens averaged"},
                       {"pool", options_.pool},
                       {"tap", "after normalisation, residual add and activation"},
                       {"l2_candidates", options_.l2},
                       {"max_iterations", options_.max_iterations},
                       {"tolerance", options_.tolerance},
                       {"train_samples", train_labels.size(0)},
                       {"samples", test_labels.size(0)}}};
  }

  // The candidate with the best accuracy on the last fifth of the training
  // features, and the classifier it gave, as a start for the final fit.
  std::pair<double, LinearClassifier> choose_l2(const torch::Tensor& features,
                                                const torch::Tensor& labels,
                                                int64_t classes) const {
    if (options_.l2.size() == 1) {
      return {options_.l2[0],
              fit_logistic_regression(features, labels, classes, solver(options_.l2[0]))};
    }
    const auto held_out = std::max<int64_t>(1, features.size(0) / 5);
    const auto used = features.size(0) - held_out;
    check(used > 0, "linear_probe: needs at least 2 training samples, got ", features.size(0));
    std::pair<double, LinearClassifier> best;
    double best_accuracy = -1;
    LinearClassifier classifier;
    for (const double l2 : options_.l2) {
      classifier =
          fit_logistic_regression(features.narrow(0, 0, used), labels.narrow(0, 0, used), classes,
                                  solver(l2), best_accuracy < 0 ? nullptr : &classifier);
      const double reached = accuracy(classifier, features.narrow(0, used, held_out),
                                      labels.narrow(0, used, held_out));
      if (reached <= best_accuracy) break;  // weaker penalties only overfit more
      best = {l2, classifier};
      best_accuracy = reached;
    }
    return best;
  }

  void add_kappa(Readings& readings, const std::vector<double>& accuracies) const {
    const Definition definition = {{"threshold", options_.threshold},
                                   {"layers", accuracies.size()},
                                   {"last_layer", "logits"},
                                   {"of", "probe_accuracy on the test split"}};
    readings.push_back({.name = "kappa",
                        .value = effective_depth(accuracies, accuracies.size(), options_.threshold),
                        .definition = definition});
    if (accuracies.size() < 2) return;
    auto penultimate = definition;
    penultimate["last_layer"] = "penultimate";
    penultimate["layers"] = accuracies.size() - 1;
    readings.push_back(
        {.name = "kappa",
         .value = effective_depth(accuracies, accuracies.size() - 1, options_.threshold),
         .definition = penultimate});
  }

  static void add_rho(Readings& readings, const std::vector<double>& accuracies,
                      const std::string& ood) {
    const Definition definition = {{"layers", accuracies.size()},
                                   {"last_layer", "logits"},
                                   {"of", "probe_accuracy on the foreign test split"}};
    const double drop = generalisation_drop(accuracies);
    readings.push_back({.name = "rho", .value = drop, .ood = ood, .definition = definition});
    readings.push_back(
        {.name = "ood_retained", .value = 1 - drop, .ood = ood, .definition = definition});
  }

  ProbeOptions options_;
  std::vector<std::string> layers_;  // in order of execution
  std::map<std::string, Population> populations_;
};

const bool registered = measures().add(
    "linear_probe",
    {
        .summary = "probe accuracy of every layer in and out of distribution; kappa and rho",
        .reference = "Unpacking Softmax, section 2; The tunnel effect, arXiv 2305.19753",
        .make = [](const MeasureContext&,
                   Settings& settings) { return std::make_unique<LinearProbe>(settings); },
    });

}  // namespace
}  // namespace kelvin
