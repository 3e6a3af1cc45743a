#include "kelvin/experiment/run.h"

#include <torch/torch.h>

#include "kelvin/core/check.h"
#include "kelvin/data/fingerprint.h"
#include "kelvin/data/fit.h"
#include "kelvin/experiment/checkpoints.h"
#include "kelvin/experiment/curves_file.h"
#include "kelvin/experiment/measure_model.h"
#include "kelvin/experiment/prepared_model.h"
#include "kelvin/experiment/progress_observer.h"
#include "kelvin/experiment/run_log.h"
#include "kelvin/experiment/run_settings.h"
#include "kelvin/experiment/same_arithmetic.h"
#include "kelvin/experiment/stall_detector.h"
#include "kelvin/experiment/step_scalars.h"
#include "kelvin/experiment/trajectory.h"
#include "kelvin/model/description.h"
#include "kelvin/model/weights.h"
#include "kelvin/runs/run_folder.h"
#include "kelvin/runs/run_lock.h"

namespace kelvin {
namespace {

Dataset load_own(const RunSettings& settings, const RunContext& context) {
  auto request = settings.request;
  request.data_folder = context.data_folder;
  return load_dataset(settings.dataset, request);
}

struct Data {
  Dataset own;
  std::vector<Dataset> foreign;
};

// Foreign images come as the network takes them, whatever their size and colours were.
std::vector<Dataset> load_foreign(const RunSettings& settings, const ImageShape& shape,
                                  const RunContext& context) {
  std::vector<Dataset> foreign;
  for (const auto& name : settings.ood) {
    DatasetRequest request = settings.request;
    request.data_folder = context.data_folder;
    request.classes = settings.ood_classes;
    request.validation_samples = 0;
    request.test_on_validation = false;
    request.image_size = shape.height;
    auto dataset = load_dataset(name, request);
    dataset.train = fit_to(dataset.train, shape);
    dataset.test = fit_to(dataset.test, shape);
    foreign.push_back(std::move(dataset));
  }
  return foreign;
}

// Said before hours of training rather than after.
void check_training_splits(const RunSettings& settings, const std::vector<Dataset>& foreign) {
  for (const auto& name : settings.measure.names) {
    const auto needs = settings.make_measure(name)->needs();
    if (!needs.ood || !needs.train_split) continue;
    for (const auto& dataset : foreign) {
      check(dataset.train.size() > 0, "dataset '", dataset.name,
            "' has no training images, which measure '", name, "' needs of foreign data");
    }
  }
}

// Likewise.
void check_attention(const std::string& key, const std::vector<std::string>& names,
                     const RunSettings& settings, Model& model, const ModelShape& shape) {
  for (const auto& name : names) {
    if (!settings.make_measure(name)->needs().attention) continue;
    const auto taps = taps_of_one_image(model, shape, {.layers = false, .attention = true});
    check(!taps.attention().empty(), key, ": '", name, "' needs a model with attention, '",
          settings.model, "' has none");
  }
}

Data load_data(const RunSettings& settings, const RunContext& context) {
  auto own = load_own(settings, context);
  auto foreign = load_foreign(settings, own.test.shape(), context);
  check_training_splits(settings, foreign);
  return {.own = std::move(own), .foreign = std::move(foreign)};
}

void check_measures(const RunSettings& settings, Model& model, const Data& data) {
  const auto shape = shape_for(data.own);
  check_attention("measure.names", settings.measure.names, settings, model, shape);
  check_attention("measure.during", settings.measure.during, settings, model, shape);
  for (const auto& name : settings.measure.during) {
    const auto needs = settings.make_measure(name)->needs();
    check(!needs.ood || !needs.train_split, "measure.during: '", name,
          "' is fitted to the training images of all datasets, which takes too long to be done "
          "during training");
  }
}

constexpr auto kDataMd5 = "data_md5";

nlohmann::ordered_json data_md5(const Dataset& dataset) {
  return {{"train", fingerprint(dataset.train)}, {"test", fingerprint(dataset.test)}};
}

void keep(const RunFolder& folder, const Measured& measured) {
  folder.add_readings(measured.readings);
  add_curves(folder.path() / "curves.npz", measured.curves);
  for (const auto& scores : measured.scores) folder.write_scores(scores);
}

std::string how_bfloat16_is_computed(torch::DeviceType device) {
  if (multiplies_bfloat16(device)) return "products are those of bfloat16, by the processor";
  return "this processor has no bfloat16: its roundings are imitated in float32, which is slower "
         "than train.precision=fp32";
}

// Everything that watches a training, in the order in which it does.
class Observers {
 public:
  Observers(const RunSettings& settings, const Data& data, const RunFolder& folder,
            const RunContext& context, int64_t first_step)
      : log_(folder, context, first_step),
        trajectory_(data.own, data.foreign, settings, log_, context),
        scalars_(log_),
        stalls_(data.own.classes, log_),
        checkpoints_(folder, settings.checkpoints, log_,
                     {.seconds = [this] { return trajectory_.seconds(); },
                      .test_accuracy = [this] { return trajectory_.test_accuracy(); },
                      .stalls = [this] { return stalls_.sums(); }}),
        progress_(context) {}

  void start_from(const Checkpoint& checkpoint) {
    trajectory_.set_seconds_before(checkpoint.seconds);
    stalls_.start_from(checkpoint.stalls);
    checkpoints_.start_from(checkpoint);
  }

  // What is saved last must hold what all others wrote.
  std::vector<TrainObserver*> all() {
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
};

// The pipeline: data, model, train, representations, measures, result.  From `start` if it is set.
RunStatus execute(RunSettings settings, const Data& data, Model& model, const RunFolder& folder,
                  const RunContext& context, const std::optional<Checkpoint>& start) {
  const auto& [dataset, foreign] = data;
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
  const auto outcome = train(model, dataset, settings.train, observers.all(), context.should_stop,
                             start ? &start->training : nullptr);
  if (outcome == TrainOutcome::stopped) return RunStatus::stopped;

  observers.log().write_curves();
  if (const auto growth = observers.trajectory().norm_growth()) folder.add_readings({*growth});
  if (const auto learned = saved_temperature(folder.path()))
    settings.trained_temperature = *learned;
  try {
    keep(folder, measure_model(model, dataset, foreign, settings, context));
  } catch (const MeasuringStopped&) {
    return RunStatus::stopped;
  }
  return RunStatus::finished;
}

// Runs it, and leaves in the folder how it ended.
void execute_in(const RunFolder& folder, const RunSettings& settings, const Data& data,
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
  const auto data = load_data(settings, context);
  check_trainable(settings, data.own);
  const auto model = prepared_model(settings, data.own);
  check_measures(settings, *model, data);
  auto described = metadata.is_null() ? nlohmann::ordered_json::object() : metadata;
  described[kDataMd5] = data_md5(data.own);
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
  const auto data = load_data(settings, context);
  check_trainable(settings, data.own);
  const auto md5 = data_md5(data.own);
  check(before.metadata.value(kDataMd5, md5) == md5, path.string(), ": dataset '", data.own.name,
        "' is not the one it was trained on: md5 ", md5.dump(), " instead of ",
        before.metadata.at(kDataMd5).dump());
  const auto start = last_checkpoint(path);
  const auto model =
      start ? settings.build_model(shape_for(data.own)) : prepared_model(settings, data.own);
  folder.remove_readings();  // somebody may have measured it in between
  RunLog::cut_back(path, start ? start->sizes : std::map<std::string, int64_t>());
  folder.add_resumption(metadata, start ? start->training.step : 0);
  folder.set_status(RunStatus::running);
  execute_in(folder, settings, data, *model, context, start);
}

Readings measure_run(const std::filesystem::path& path, const MeasureRequest& request,
                     const RunContext& context) {
  const auto folder = RunFolder::open(path);
  const auto lock = RunLock::take(path);
  auto config = Config::load(path / "config.toml");
  config.merge(request.settings);
  auto settings = RunSettings::from(config);
  if (request.settings.has("measure.names")) settings.measure.detectors.clear();
  const auto data = load_data(settings, context);
  const auto model = settings.build_model(shape_for(data.own));
  load_weights(last_weights(path), *model);
  model->to(device_of(settings.device));
  check_measures(settings, *model, data);
  settings.trained_temperature =
      saved_temperature(path).value_or(last_temperature(settings.train, data.own.train.size()));
  const auto measured = measure_model(*model, data.own, data.foreign, settings, context);
  keep(folder, measured);
  if (!request.curves.empty()) write_curves(request.curves, measured.curves);
  return measured.readings;
}

Readings measure_weights(const MeasureRequest& request, const RunContext& context) {
  const auto settings = RunSettings::from(request.settings);
  check(!settings.init.pretrained.empty(), "init.pretrained: must name a file of weights");
  const auto data = load_data(settings, context);
  const auto model = prepared_model(settings, data.own);
  check_measures(settings, *model, data);
  const auto measured = measure_model(*model, data.own, data.foreign, settings, context);
  if (!request.curves.empty()) write_curves(request.curves, measured.curves);
  return measured.readings;
}

}  // namespace kelvin
