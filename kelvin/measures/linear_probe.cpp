#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/measures/cached_probes.h"
#include "kelvin/measures/measure.h"
#include "kelvin/measures/probes.h"
#include "kelvin/measures/streamed_probes.h"

namespace kelvin {
namespace {

ProbeProtocol read_protocol(Settings& settings) {
  std::string name = "diagnose";
  settings.read("protocol", name);
  check(name == "diagnose" || name == "reproduce" || name == "published",
        settings.full_name("protocol"), ": must be diagnose, reproduce or published, got '", name,
        "'");
  if (name == "diagnose") return ProbeProtocol::diagnose;
  return name == "reproduce" ? ProbeProtocol::reproduce : ProbeProtocol::published;
}

ProbeTap read_tap(Settings& settings) {
  std::string name = "output";
  settings.read("tap", name);
  check(name == "output" || name == "before_add", settings.full_name("tap"),
        ": must be output or before_add, got '", name, "'");
  return name == "output" ? ProbeTap::output : ProbeTap::before_add;
}

void read_solver(Settings& settings, ProbeOptions& options) {
  const auto at_least = [&](const char* key, int64_t& field, int64_t least) {
    settings.read(key, field);
    check(field >= least, settings.full_name(key), ": must be at least ", least, ", got ", field);
  };
  if (options.protocol == ProbeProtocol::diagnose) {
    at_least("pool", options.pool, 1);
    at_least("max_iterations", options.max_iterations, 1);
    settings.read("tolerance", options.tolerance);
    check(options.tolerance > 0, settings.full_name("tolerance"), ": must be above 0, got ",
          options.tolerance);
    return;
  }
  const bool is_published = options.protocol == ProbeProtocol::published;
  options.passes = is_published ? 30 : 2;
  options.batch = is_published ? 512 : 256;
  at_least("passes", options.passes, is_published ? 1 : 2);
  at_least("batch", options.batch, 1);
  if (!is_published) return;
  settings.read("rate", options.learning_rate);
  check(options.learning_rate > 0 && std::isfinite(options.learning_rate),
        settings.full_name("rate"), ": must be finite and above 0, got ", options.learning_rate);
}

void read_penalties(Settings& settings, ProbeOptions& options) {
  if (options.protocol == ProbeProtocol::published) return;
  settings.read("l2", options.l2);
  check(!options.l2.empty(), settings.full_name("l2"), ": must name at least one value");
  for (const double l2 : options.l2) {
    check(l2 >= 0 && std::isfinite(l2), settings.full_name("l2"),
          ": must be finite and not below 0, got ", l2);
  }
  // From strong to weak, so that each fit starts close to its solution.
  std::sort(options.l2.rbegin(), options.l2.rend());
}

ProbeOptions read_options(const MeasureContext& context, Settings& settings) {
  ProbeOptions options;
  options.seed = context.seed;
  options.protocol = read_protocol(settings);
  options.tap = read_tap(settings);
  read_solver(settings, options);
  read_penalties(settings, options);
  settings.read("keep_weights", options.keep_weights);
  settings.read("threshold", options.threshold);
  check(options.threshold > 0 && options.threshold <= 1, settings.full_name("threshold"),
        ": must be in (0, 1], got ", options.threshold);
  return options;
}

std::string whose(const std::string& ood) { return ood.empty() ? "the trained dataset" : ood; }

// A linear classifier on every layer's frozen features, for the classes of the dataset trained on
// and for those of each OOD one.
class LinearProbe : public Measure {
 public:
  LinearProbe(const ProbeOptions& options, const MeasureContext& context)
      : options_(options), context_(context) {}

  Needs needs() const override { return {.train_split = true, .layers = true, .ood = true}; }

  void update(const Record& record) override {
    check(!record.layers.empty(), "linear_probe: no layers were recorded");
    check_labels(record);
    auto& probes = population(record.ood);
    if (record.split == Split::train) {
      last_trained_ = &probes;
      probes.see_train(record);
    } else {
      probes.see_test(record);
    }
  }

  bool wants_train_again() override {
    return last_trained_ != nullptr && last_trained_->wants_train_again();
  }

  // Cached probes take over what the others kept.  Streamed ones cannot be merged: an Error, after
  // which this measure is as it was.
  void merge(const Measure& other) override {
    const auto& theirs = static_cast<const LinearProbe&>(other);
    for (const auto& [ood, probes] : theirs.populations_) {
      if (const auto found = populations_.find(ood); found != populations_.end()) {
        found->second->merge(*probes);
      } else {
        auto ours = made();
        ours->merge(*probes);
        populations_.emplace(ood, std::move(ours));
      }
      results_.erase(ood);
    }
  }

  NamedTensors state() const override {
    NamedTensors tensors;
    for (const auto& [ood, probes] : populations_) {
      for (const auto& [name, tensor] : probes->state()) tensors[ood + "/" + name] = tensor;
    }
    return tensors;
  }

  Readings compute() const override {
    check(!populations_.empty(), "linear_probe: no layers were recorded");
    Readings readings;
    for (const auto& [ood, probes] : populations_) {
      const auto found = probe_readings(results_of(ood), ood, options_);
      readings.insert(readings.end(), found.begin(), found.end());
    }
    return readings;
  }

  NamedTensors curves() const override {
    NamedTensors tensors;
    if (!options_.keep_weights || !populations_.contains("")) return tensors;
    for (const auto& result : results_of("")) {
      tensors["probe_weight/" + result.layer] = result.weight;
      tensors["probe_bias/" + result.layer] = result.bias;
    }
    return tensors;
  }

  int64_t memory(const Record& example, int64_t samples) const override {
    return made()->memory(example, samples, context_);
  }

 private:
  // Readings and curves both need them, and solving takes minutes.
  const std::vector<ProbeResult>& results_of(const std::string& ood) const {
    auto& results = results_[ood];
    if (results.empty()) {
      const auto& probes = *populations_.at(ood);
      check(probes.saw_both_splits(), "linear_probe: needs both splits of ", whose(ood));
      results = probes.results();
    }
    return results;
  }

  std::unique_ptr<Probes> made() const {
    if (options_.protocol == ProbeProtocol::diagnose) {
      return std::make_unique<CachedProbes>(options_);
    }
    return std::make_unique<StreamedProbes>(options_);
  }

  Probes& population(const std::string& ood) {
    results_.erase(ood);
    auto& probes = populations_[ood];
    if (!probes) probes = made();
    return *probes;
  }

  ProbeOptions options_;
  MeasureContext context_;
  std::map<std::string, std::unique_ptr<Probes>> populations_;  // by the name of the OOD one
  Probes* last_trained_ = nullptr;
  mutable std::map<std::string, std::vector<ProbeResult>> results_;
};

const bool linear_probe_registered = measures().add(
    "linear_probe",
    {
        .summary = "probe accuracy of every layer in and out of distribution; kappa and rho",
        .reference = "Unpacking Softmax, section 2; The tunnel effect, arXiv 2305.19753",
        .make =
            [](const MeasureContext& context, Settings& settings) {
              return std::make_unique<LinearProbe>(read_options(context, settings), context);
            },
    });

}  // namespace
}  // namespace kelvin
