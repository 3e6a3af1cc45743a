#include "kelvin/experiment/run/run.h"

#include <torch/torch.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/core/json_fields.h"
#include "kelvin/core/text.h"
#include "kelvin/data/dataset.h"
#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/experiment/evaluate/measure_dump.h"
#include "kelvin/experiment/evaluate/measure_model.h"
#include "kelvin/experiment/evaluate/trained_network.h"
#include "kelvin/experiment/run/checkpoints.h"
#include "kelvin/experiment/run/progress.h"
#include "kelvin/experiment/run/run_data.h"
#include "kelvin/experiment/run/run_log.h"
#include "kelvin/experiment/run/run_store.h"
#include "kelvin/experiment/run/same_arithmetic.h"
#include "kelvin/experiment/run/stall_detector.h"
#include "kelvin/experiment/run/trajectory.h"
#include "kelvin/model/weights.h"
#include "kelvin/ops/reference_ops.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;
using Sizes = std::map<std::string, int64_t>;

constexpr auto kDataMd5 = "data_md5";

nlohmann::ordered_json data_md5(const Dataset& dataset) {
  return {{"train", fingerprint(dataset.train)}, {"test", fingerprint(dataset.test)}};
}

// Where the request wants it besides.
void write(const MeasureRequest& request, const Measured& measured) {
  if (!request.curves.empty()) write_curves(request.curves, measured.curves);
  if (request.scores.empty()) return;
  for (const auto& scores : measured.scores) write_scores(request.scores, scores);
}

std::string how_bfloat16_is_computed(torch::DeviceType device) {
  if (multiplies_bfloat16(device)) return "products are those of bfloat16, by the processor";
  return "this processor has no bfloat16: its roundings are emulated in float32, which is slower "
         "than train.precision=fp32";
}

// Everything that watches a training, in the order in which it does.
class Observers {
 public:
  Observers(const RunSettings& settings, const RunData& data, const RunFolder& folder,
            const RunContext& context, int64_t first_step)
      : log_(folder, context, first_step),
        trajectory_(data.own, data.ood, settings, log_, context),
        scalars_(log_),
        stalls_(data.own.classes, log_),
        checkpoints_(folder, settings.checkpoints, log_,
                     {.seconds = [this] { return trajectory_.seconds(); },
                      .test_accuracy = [this] { return trajectory_.test_accuracy(); },
                      .stalls = [this] { return stalls_.sums(); }}),
        progress_(context),
        looks_for_stalls_(settings.train.loss.classifies()) {}

  void start_from(const Checkpoint& checkpoint) {
    trajectory_.set_seconds_before(checkpoint.seconds);
    stalls_.start_from(checkpoint.stalls);
    checkpoints_.start_from(checkpoint);
  }

  // What is saved last must hold what all others wrote.
  std::vector<TrainObserver*> all() {
    if (!looks_for_stalls_) return {&trajectory_, &scalars_, &checkpoints_, &progress_};
    return {&trajectory_, &scalars_, &stalls_, &checkpoints_, &progress_};
  }

  const RunLog& log() const { return log_; }
  const Trajectory& trajectory() const { return trajectory_; }

 private:
  RunLog log_;
  Trajectory trajectory_;
  StepScalars scalars_;
  StallDetector stalls_;
  Checkpoints checkpoints_;
  ProgressObserver progress_;
  // Cosines over a high T are nearly uniform whatever a network learns.
  const bool looks_for_stalls_;
};

// The pipeline: data, model, train, representations, measures, result.  From `start` if it is set.
RunStatus execute(RunSettings settings, const RunData& data, Model& model, const RunFolder& folder,
                  const RunContext& context, const std::optional<Checkpoint>& start) {
  const ReferenceOpsScope path(settings.train.uses_reference_ops);
  const auto& [dataset, ood] = data;
  const auto device = device_of(settings.device);
  settings.trained_temperature = last_temperature(settings.train, dataset.train.size());
  model.to(device);
  // TensorBoard drops what a process before this one said of them.
  const int64_t first_step = start ? start->training.step + 1 : 1;
  Observers observers(settings, data, folder, context, first_step);
  if (start) observers.start_from(*start);
  if (settings.train.precision == Precision::bf16 && !start) {
    observers.log().add_note(0, how_bfloat16_is_computed(device.type()));
  }
  const auto trained = train(model, dataset, settings.train, observers.all(), context.should_stop,
                             start ? &start->training : nullptr);
  if (trained.outcome == TrainOutcome::stopped) return RunStatus::stopped;

  observers.log().write_curves();
  if (const auto growth = observers.trajectory().norm_growth()) folder.add_readings({*growth});
  settings.trained_temperature = trained.temperature;
  try {
    const auto measured = measure_model(model, dataset, ood, settings, context);
    store_in_run(folder.path(), measured.readings, measured.curves, measured.scores);
  } catch (const MeasuringStopped&) {
    return RunStatus::stopped;
  }
  return RunStatus::finished;
}

// "train.lr 0.1 instead of 0.3, seed 2 instead of 1"
std::string text_of(const std::vector<ChangedSetting>& changes) {
  std::vector<std::string> texts;
  for (const auto& change : changes) {
    texts.push_back(change.key + " " + change.to.dump() + " instead of " + change.from.dump());
  }
  return join(texts, ", ");
}

// Whether checkpoints may not fit any more: --inexact then helps only where they do.
bool may_not_fit(const ChangedSetting& change) {
  return change.key == "data.name" || change.key == "data.train_samples" ||
         change.key == "data.test_samples" || change.key.starts_with("model.") ||
         change.key.starts_with("train.optimizer");
}

// What somebody changed in config.toml since the run was at work; an Error unless that is wanted.
std::vector<ChangedSetting> allowed_changes(const Run& before, const Config& resolved,
                                            bool is_inexact) {
  auto changes = changed_settings(before, resolved);
  check(changes.empty() || is_inexact, (before.path / "config.toml").string(),
        ": was changed since the run started: ", text_of(changes), "; change it back, or ",
        std::any_of(changes.begin(), changes.end(), may_not_fit)
            ? "if images and weights are those of its checkpoint nevertheless, "
            : "",
        "go on with --inexact, which writes the change down");
  return changes;
}

// The images must be those that the run was trained on.
void check_same_data(const Run& before, const Dataset& dataset, bool is_inexact) {
  const auto origin = (before.path / "metadata.json").string();
  const JsonFields metadata(before.metadata, origin);
  check(metadata.has(kDataMd5) || is_inexact, origin, ": ", kDataMd5,
        ": is missing, so that nobody can tell whether these are the data it was trained on; "
        "--inexact goes on nevertheless");
  if (!metadata.has(kDataMd5)) return;
  const auto& then = metadata.object(kDataMd5);
  const auto now = data_md5(dataset);
  check(then == now, before.path.string(), ": dataset '", dataset.name,
        "' is not the one it was trained on: md5 ", now.dump(), " instead of ", then.dump());
}

// All that could end a run that goes on for what its folder holds, before anything is changed.
void check_can_go_on(const Run& before, const RunSettings& settings, const RunData& data,
                     Model& model, const std::optional<Checkpoint>& start, bool is_as_before) {
  const auto& path = before.path;
  const auto metrics = RunLog::lines_to_keep(path, start ? start->sizes : Sizes());
  for (const char* name : {"curves.npz", "status.part", "metadata.json.part"}) {
    check(!fs::is_directory(path / name), (path / name).string(), ": is a folder, must be a file");
  }
  const auto checkpoints = path / "checkpoints";
  check(!fs::exists(checkpoints) || fs::is_directory(checkpoints), checkpoints.string(),
        ": is a file, must be a folder");
  if (!start) return;
  const auto& training = start->training;
  if (training.step > 0) {
    seen_before(metrics, settings.train.loss.classifies(), (path / "metrics.jsonl").string());
  }
  check_start(model, data.own, settings.train, training);
  const auto epoch = total_steps(settings.train, data.own.train.size()) / settings.train.epochs;
  check(!is_as_before || training.step == training.epoch * epoch + training.epoch_steps,
        path.string(), ": its last checkpoint contradicts itself: step ", training.step,
        " cannot be ", training.epoch_steps, " steps after ", training.epoch, " epochs of ", epoch);
}

// Runs it, and leaves in the folder how it ended.
void execute_in(const RunFolder& folder, const RunSettings& settings, const RunData& data,
                Model& model, const RunContext& context, const std::optional<Checkpoint>& start) {
  try {
    folder.set_status(execute(settings, data, model, folder, context, start));
  } catch (...) {
    try {
      folder.set_status(RunStatus::failed);
    } catch (const Error&) {  // a full disk: the first error is the one to tell
    }
    throw;
  }
}

}  // namespace

void run(const Config& config, const std::filesystem::path& output,
         const nlohmann::ordered_json& metadata, const RunContext& context) {
  const auto settings = RunSettings::from(config);
  // Data or pretrained weights that are not there leave no folder.
  const auto data = load_run_data(settings, context);
  check_trainable(settings, data.own);
  const auto model = prepared_model(settings, data.own, context);
  check_measures(settings, *model, data);
  check_initial_logits(settings, *model, data.own);
  auto described = metadata.is_null() ? nlohmann::ordered_json::object() : metadata;
  described[kDataMd5] = data_md5(data.own);
  described["config"] = config_record(settings.resolved);
  const auto folder = RunFolder::create(output, settings.resolved, described);
  const auto lock = RunLock::take(output);
  execute_in(folder, settings, data, *model, context, std::nullopt);
}

void resume(const std::filesystem::path& path, const nlohmann::ordered_json& metadata,
            bool is_inexact, const RunContext& context) {
  const auto folder = RunFolder::open(path);
  const auto lock = RunLock::take(path);
  const auto before = load_run(path);
  check(before.status != RunStatus::finished, path.string(), ": is finished; nothing to resume");
  if (!is_inexact) check_same_arithmetic(path.string(), before.metadata, metadata);
  const auto settings = RunSettings::from(before.config);
  const auto changes = allowed_changes(before, settings.resolved, is_inexact);
  const auto data = load_run_data(settings, context);
  check_trainable(settings, data.own);
  check_same_data(before, data.own, is_inexact);
  const auto start = last_checkpoint(path);
  const auto model = start ? settings.build_model(shape_for(settings, data.own))
                           : prepared_model(settings, data.own, context);
  check_measures(settings, *model, data);
  check_can_go_on(before, settings, data, *model, start, changes.empty());

  if (start) restore_links(path, *start);
  folder.remove_readings();  // somebody may have measured it in between
  RunLog::cut_back(path, start ? start->sizes : Sizes());
  const auto step = start ? start->training.step : 0;
  folder.add_resumption({.metadata = metadata, .step = step, .changes = changes});
  if (!changes.empty()) context.warn("goes on with other settings: " + text_of(changes));
  folder.set_status(RunStatus::running);
  execute_in(folder, settings, data, *model, context, start);
}

Readings measure_run(const std::filesystem::path& path, const MeasureRequest& request,
                     const RunContext& context) {
  RunFolder::open(path);
  std::optional<RunLock> lock;
  if (request.stores) lock.emplace(lock_to_store(path));
  auto network = open_run(path, request.settings, context);
  if (request.settings.has("measure.names") && !request.settings.has("measure.detectors")) {
    network.settings.measure.detectors.clear();
  }
  const auto& [settings, data, model] = network;
  check_measures(settings, *model, data);
  const auto measured = measure_model(*model, data.own, data.ood, settings, context);
  request.on_readings(measured.readings);
  write(request, measured);
  if (request.stores) {
    store_in_run(path, measured.readings, measured.curves, measured.scores);
  }
  return measured.readings;
}

Readings measure_weights(const MeasureRequest& request, const RunContext& context) {
  const auto [settings, data, model] = open_weights(request.settings, context);
  check_measures(settings, *model, data);
  const auto measured = measure_model(*model, data.own, data.ood, settings, context);
  request.on_readings(measured.readings);
  write(request, measured);
  return measured.readings;
}

Readings measure(const MeasureRequest& request, const RunContext& context) {
  if (!request.run.empty()) return measure_run(request.run, request, context);
  if (!request.dump.empty()) return measure_dump(request.dump, request, context);
  return measure_weights(request, context);
}

namespace {

void train_task(const TrainRequest& request, const RunContext& context) {
  run(request.resolved, request.output, request.metadata, context);
}

void resume_task(const ResumeRequest& request, const RunContext& context) {
  resume(request.run, request.metadata, request.is_inexact, context);
}

const bool run_registered = add_task(train_task) && add_task(resume_task) && add_task(measure);

}  // namespace
}  // namespace kelvin
