#include "kelvin/experiment/tasks/train_retrieval.h"

#include <torch/torch.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/experiment/retrieval/retrieval_file.h"
#include "kelvin/ops/parallel_for.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Means over the last steps of a training.
class LastSteps {
 public:
  explicit LastSteps(int64_t steps) : first_(steps - std::min(steps, kCounted)) {}

  void add(int64_t step, const RetrievalTrainer::StepValues& values) {
    if (step < first_) return;
    ++count_;
    loss_ += values.loss;
    accuracy_ += values.accuracy;
  }

  double loss() const { return loss_ / static_cast<double>(count_); }
  double accuracy() const { return accuracy_ / static_cast<double>(count_); }

 private:
  static constexpr int64_t kCounted = 100;
  int64_t first_;
  int64_t count_ = 0;
  double loss_ = 0;
  double accuracy_ = 0;
};

// Where a network is to lie, and what is known of it.
struct PlannedNetwork {
  RetrievalSettings settings;
  fs::path file;
  Json row;
};

PlannedNetwork planned_network(const TrainRetrievalRequest& request, int64_t seed) {
  auto config = request.config;
  config.set("retrieval.seed", seed);
  auto settings = RetrievalSettings::from(config);
  auto file =
      request.output / (settings.attention + ",seed=" + std::to_string(seed) + ".safetensors");
  if (fs::exists(file)) {
    check(load_retrieval(file).settings.resolved.values() == settings.resolved.values(),
          file.string(), ": was trained with other settings; choose another folder");
  }
  Json row = {{"file", file.string()},
              {"attention", settings.attention},
              {"seed", seed},
              {"steps", settings.training.steps}};
  return {.settings = std::move(settings), .file = std::move(file), .row = std::move(row)};
}

// Several are trained at once, but only one at a time speaks to the outside world.
class SharedContext {
 public:
  explicit SharedContext(const RunContext& context) : context_(context) {}

  double seconds() const { return context_.seconds(); }

  void check_goes_on(const fs::path& file) {
    const std::lock_guard lock(mutex_);
    check(!context_.should_stop(), "stopped in the training of ", file.filename().string(),
          "; what was finished before is kept");
  }

  void report(const fs::path& file, int64_t step, int64_t steps, double loss) {
    const std::lock_guard lock(mutex_);
    context_.report_progress({.phase = "train " + file.stem().string(),
                              .done = step,
                              .total = steps,
                              .note = "loss " + short_number(loss, 3)});
  }

 private:
  const RunContext& context_;
  std::mutex mutex_;
};

void train_and_save(PlannedNetwork& planned, SharedContext& context) {
  constexpr int64_t kReported = 50;
  const auto& settings = planned.settings;
  const auto steps = settings.training.steps;
  const auto network = settings.network();
  RetrievalTrainer trainer(network, settings.map, settings.training, settings.sets_seed());
  LastSteps last(steps);
  const auto began = context.seconds();
  for (int64_t step = 0; step < steps; ++step) {
    context.check_goes_on(planned.file);
    const auto values = trainer.step();
    last.add(step, values);
    if ((step + 1) % kReported == 0) context.report(planned.file, step + 1, steps, values.loss);
  }
  planned.row["seconds"] = context.seconds() - began;
  planned.row["loss"] = last.loss();
  planned.row["accuracy"] = last.accuracy();
  save_retrieval(planned.file, settings, network);
}

}  // namespace

Json train_retrieval(const TrainRetrievalRequest& request, const RunContext& context) {
  check(!request.seeds.empty(), "max retrieval: needs at least one seed");
  check(std::set(request.seeds.begin(), request.seeds.end()).size() == request.seeds.size(),
        "max retrieval: seeds must differ");
  std::error_code failure;
  fs::create_directories(request.output, failure);
  check(!failure, request.output.string(), ": cannot be made: ", failure.message());
  std::vector<PlannedNetwork> planned;
  for (const auto seed : request.seeds) planned.push_back(planned_network(request, seed));
  std::vector<PlannedNetwork*> missing;
  for (auto& each : planned) {
    if (!fs::exists(each.file)) missing.push_back(&each);
  }
  SharedContext shared(context);
  parallel_for_tasks(static_cast<int64_t>(missing.size()), [&](int64_t i) {
    // Networks share no tensor, so that each may have gradients of its own.  Products this small
    // gain nothing from a second core; a second network does.
    const torch::AutoGradMode with_gradients(true);
    train_and_save(*missing[static_cast<size_t>(i)], shared);
  });
  auto rows = Json::array();
  for (const auto& each : planned) rows.push_back(each.row);
  return rows;
}

namespace {

const bool train_retrieval_registered = add_task(train_retrieval);

}  // namespace
}  // namespace kelvin
