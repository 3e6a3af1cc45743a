#include "kelvin/experiment/config/run_settings.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/core/text.h"
#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/experiment/evaluate/detection.h"

namespace kelvin {
namespace {

// Nothing of the section may be left unread; what was read goes into the resolved config.
void finish(Config& resolved, const Settings& settings) {
  settings.reject_unknown_keys();
  for (const auto& [key, value] : settings.resolved()) {
    resolved.set(settings.full_name(key), value);
  }
}

void check_sample_count(const std::string& key, int64_t count) {
  constexpr int64_t kMost = 100'000'000;
  check(count >= 0 && count <= kMost, key, ": must be from 0 (all) to ", kMost, ", got ", count);
}

// Which classes and samples.
void read_choice(Settings& settings, RunSettings& run) {
  auto& request = run.request;
  std::string test_on = "test";
  int64_t subset_seed = 0;
  settings.read("classes", request.classes);
  settings.read("ood_classes", run.ood_classes);
  settings.read("validation_samples", request.validation_samples);
  settings.read("test_on", test_on);
  settings.read("subset_seed", subset_seed);
  check_sample_count("data.validation_samples", request.validation_samples);
  check(test_on == "test" || test_on == "validation",
        "data.test_on: must be test or validation, got '", test_on, "'");
  request.test_on_validation = test_on == "validation";
  check(!request.test_on_validation || request.validation_samples > 0,
        "data.test_on: to test on validation images, set data.validation_samples above 0");
  check(subset_seed >= 0, "data.subset_seed: must not be below 0, got ", subset_seed);
  request.subset_seed = static_cast<uint64_t>(subset_seed);
}

// How pictures become training images.
void read_pictures(Settings& settings, RunSettings& run) {
  auto& request = run.request;
  std::string augmentation = "none";
  std::string image_root;
  std::string normalisation = "dataset";
  settings.read("augment", augmentation);
  settings.read("image_size", request.image_size);
  settings.read("crop_share", request.crop_share);
  settings.read("cache_images", request.cache_images);
  settings.read("image_root", image_root);
  settings.read("normalisation", normalisation);
  settings.read("upsample", request.upsample_to);
  run.train.augmentation = augmentation_of(augmentation);
  request.image_root = image_root;
  request.normalisation = normalisation_of(normalisation);
  check(request.image_size >= 0 && request.image_size <= 4096,
        "data.image_size: must be from 0 (the dataset's own) to 4096, got ", request.image_size);
  check(request.upsample_to >= 0 && request.upsample_to <= 4096,
        "data.upsample: must be from 0 (not at all) to 4096, got ", request.upsample_to);
  check(request.crop_share >= 0.01 && request.crop_share <= 1,
        "data.crop_share: must be from 0.01 to 1, got ", request.crop_share);
  check(!request.cache_images || run.train.augmentation != Augmentation::resized_crop_flip,
        "data.cache_images: keeps the middle of each picture, so that data.augment cannot be "
        "resized-crop-flip");
}

void read_data(const Config& config, RunSettings& run) {
  auto settings = config.section("data");
  settings.read("name", run.dataset);
  settings.read("ood", run.ood);
  settings.read("train_samples", run.request.train_samples);
  settings.read("test_samples", run.request.test_samples);
  read_choice(settings, run);
  read_pictures(settings, run);
  find_dataset(run.dataset);
  check_ood_names("data.ood", run.ood);
  for (const auto& name : run.ood) {
    find_dataset(name);
    check(name != run.dataset, "data.ood: must differ from data.name, got '", name, "' for both");
  }
  check_sample_count("data.train_samples", run.request.train_samples);
  check_sample_count("data.test_samples", run.request.test_samples);
  finish(run.resolved, settings);
}

// With how many training images the schedules count is known only once they are there, but where
// they end is nearly the same for any.
double end_of(const TrainOptions& train) {
  constexpr int64_t kManySamples = 1'000'000;
  return last_temperature(train, kManySamples);
}

void read_training(const Config& config, RunSettings& run) {
  auto settings = config.section("train");
  const auto augmentation = run.train.augmentation;  // of the section "data"
  run.train = read_train(settings, static_cast<uint64_t>(run.seed));
  run.train.augmentation = augmentation;
  run.checkpoints = read_checkpoints(settings);
  run.trained_temperature = end_of(run.train);
  settings.read("loss", run.loss_name);
  check(run.train.loss.classifies() || augmentation != Augmentation::none,
        "data.augment: must not be none for train.loss=", run.loss_name,
        ": two equal views of an image teach nothing");
  finish(run.resolved, settings);
}

// What says nothing of this network is not among the defaults, and is refused if asked for.
void leave_out_classifiers(MeasureSettings& measure) {
  std::erase_if(measure.names,
                [](const auto& name) { return measures().find(name).needs_classifier; });
}

void check_no_classifiers(const RunSettings& run) {
  if (run.train.loss.classifies()) return;
  for (const auto& [key, names] : {std::pair("measure.names", run.measure.names),
                                   std::pair("measure.during", run.measure.during)}) {
    for (const auto& name : names) {
      if (!measures().find(name).needs_classifier) continue;
      run.check_classifies(std::string(key) + ": '" + name + "'");
    }
  }
}

// Of those that are asked for by name.
void check_no_classifiers_among_detectors(const RunSettings& run) {
  const bool takes_what_fits = run.measure.detectors == std::vector<std::string>{kAllDetectors};
  if (run.train.loss.classifies() || takes_what_fits) return;
  for (const auto& name : run.measure.detectors) {
    if (!run.make_detector(name)->needs().classifier) continue;
    run.check_classifies("measure.detectors: '" + name + "'");
  }
}

// Not said: the known ones.
void read_groups(Settings& settings, RunSettings& run) {
  auto& groups = run.measure.groups;
  settings.read("near", groups.near);
  settings.read("far", groups.far);
  check_members(groups, run.ood);
  if (groups.near.empty() && groups.far.empty()) groups = known_groups(run.dataset);
}

void read_measure(const Config& config, RunSettings& run) {
  auto settings = config.section("measure");
  if (!run.train.loss.classifies()) leave_out_classifiers(run.measure);
  settings.read("names", run.measure.names);
  settings.read("detectors", run.measure.detectors);
  read_groups(settings, run);
  settings.read("train_samples", run.measure.train_samples);
  settings.read("epoch_samples", run.measure.epoch_samples);
  settings.read("during", run.measure.during);
  settings.read("steps_per_decade", run.measure.steps_per_decade);
  settings.read("temperature", run.measure.temperature);
  settings.read("gradient_samples", run.measure.gradient_samples);
  read_memory(settings, run.measure.memory);
  for (const auto& name : run.measure.names) measures().find(name);
  for (const auto& name : run.measure.during) measures().find(name);
  detector_names(run.measure.detectors);
  check(run.measure.steps_per_decade >= 0 && run.measure.steps_per_decade <= 1000,
        "measure.steps_per_decade: must be from 0 to 1000, got ", run.measure.steps_per_decade);
  check_not_negative("measure.temperature", run.measure.temperature);
  if (run.measure.temperature > 0) {
    check_temperature_setting("measure.temperature", run.measure.temperature);
  }
  check_count("measure.train_samples", run.measure.train_samples, 2);
  check_count("measure.gradient_samples", run.measure.gradient_samples, 1);
  check_count("measure.epoch_samples", run.measure.epoch_samples, 2);
  check_no_classifiers(run);
  finish(run.resolved, settings);
}

// Makes one of each measure and detector, because only they know which keys they read.
std::vector<std::string> read_each_measure(const Config& config, RunSettings& run) {
  std::vector<std::string> sections;
  for (const auto& [name, entry] : measures().entries()) {
    sections.push_back("measure." + name);
    auto settings = config.section(sections.back());
    entry.make(run.context(), settings);
    finish(run.resolved, settings);
  }
  for (const auto& [name, entry] : detectors().entries()) {
    sections.push_back("detector." + name);
    auto settings = config.section(sections.back());
    entry.make(run.context(), settings);
    finish(run.resolved, settings);
  }
  return sections;
}

ModelShape model_shape(const RunSettings& run, const ImageShape& image, int64_t classes) {
  const auto wanted = run.train.loss.outputs;
  return {.channels = image.channels,
          .height = image.height,
          .width = image.width,
          .classes = wanted > 0 ? wanted : classes};
}

void check_init(const StartSettings& init) {
  const auto& options = init.options;
  check_above_zero("init.deviation", options.std_dev);
  check(options.scheme == InitScheme::fixed || options.std_dev == InitOptions().std_dev,
        "init.deviation: is for init.scheme=fixed; other schemes have their own");
  check_above_zero("init.scale", options.scale);
  check_above_zero("init.last_scale", options.last_scale);
  check_not_negative("init.last_uniform", options.last_uniform);
  check_not_negative("init.target_logits_norm", init.target_logits_norm);
  check(init.pretrained_part.empty() || !init.pretrained.empty(),
        "init.pretrained_part: is for pretrained weights; set init.pretrained as well");
  check(!init.reset_head || !init.pretrained.empty(),
        "init.reset_head: is for pretrained weights; set init.pretrained as well");
  const bool draws_all = options.scheme != InitScheme::usual || options.scale != 1;
  check(init.pretrained.empty() || !draws_all,
        "init.pretrained: replaces what init.scheme and init.scale would draw; leave them out");
  const bool draws_last = options.last_uniform > 0 || options.last_scale != 1;
  check(init.pretrained.empty() || init.reset_head || !draws_last,
        "init.pretrained: replaces the last layer as well; init.last_uniform and init.last_scale "
        "need init.reset_head");
}

void read_init(const Config& config, RunSettings& run) {
  auto settings = config.section("init");
  auto& init = run.init;
  std::string scheme = "default";
  settings.read("scheme", scheme);
  settings.read("deviation", init.options.std_dev);
  settings.read("scale", init.options.scale);
  settings.read("last_scale", init.options.last_scale);
  settings.read("last_uniform", init.options.last_uniform);
  settings.read("pretrained", init.pretrained);
  settings.read("pretrained_part", init.pretrained_part);
  settings.read("reset_head", init.reset_head);
  settings.read("target_logits_norm", init.target_logits_norm);
  init.options.scheme = init_scheme_of(scheme);
  check_init(init);
  finish(run.resolved, settings);
}

// Whoever loads the images finds out in any case; of many runs none should have been trained by
// then.
void check_held_out(const DatasetRequest& request, const DatasetFacts& facts) {
  const bool is_possible =
      facts.train_samples == 0 || request.validation_samples < facts.train_samples;
  check(is_possible, "data.validation_samples: must be below the ", facts.train_samples,
        " training images, got ", request.validation_samples);
}

void read_model(const Config& config, RunSettings& run) {
  auto settings = config.section("model");
  settings.read("name", run.model);
  const auto facts = dataset_facts(run.dataset, run.request);
  check_held_out(run.request, facts);
  const auto& entry = models().find(run.model);
  const auto build = entry.read(model_shape(run, facts.shape, facts.classes), settings);
  // Whatever is wrong is to be refused before any data is read.
  if (entry.is_checked_by_building) build();
  finish(run.resolved, settings);
}

}  // namespace

void read_memory(Settings& settings, int64_t& bytes) {
  auto text = byte_text(bytes);
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  settings.read("memory", text);
  bytes = bytes_of(text, settings.full_name("memory"));
}

ModelShape shape_for(const RunSettings& settings, const Dataset& dataset) {
  return model_shape(settings, dataset.shown_shape(), dataset.classes);
}

torch::Device device_of(const std::string& name) {
  const bool is_cpu = name == "cpu";
  const bool is_cuda = name == "cuda" || name.starts_with("cuda:");
  const auto digits = name.size() > 5 ? name.substr(5) : "";
  check(is_cpu || (is_cuda && digits.size() <= 2 &&
                   digits.find_first_not_of("0123456789") == std::string::npos),
        "device: must be cpu, cuda or cuda:N, got '", name, "'");
  check(is_cpu || torch::cuda::is_available(), "device: this machine or this LibTorch has no ",
        name);
  return torch::Device(name);
}

void check_trainable(const RunSettings& settings, const Dataset& dataset) {
  check(dataset.train.size() > 0, "dataset '", dataset.name, "' has no training images");
  check(dataset.train.files || settings.train.augmentation != Augmentation::resized_crop_flip,
        "data.augment: resized-crop-flip is for pictures on disk; for '", dataset.name,
        "' there is crop-flip");
}

RunSettings RunSettings::from(const Config& config) {
  RunSettings run;
  auto top = config.section("");
  top.read("seed", run.seed);
  top.read("device", run.device);
  finish(run.resolved, top);
  check(run.seed >= 0, "seed: must not be below 0, got ", run.seed);
  device_of(run.device);
  read_data(config, run);
  read_training(config, run);
  read_measure(config, run);
  std::vector<std::string> sections = {"data", "model", "init", "train", "measure"};
  for (const auto& section : read_each_measure(config, run)) sections.push_back(section);
  check_no_classifiers_among_detectors(run);
  config.reject_unknown_sections(sections);
  read_init(config, run);
  read_model(config, run);
  return run;
}

std::shared_ptr<Model> RunSettings::build_model(const ModelShape& shape) const {
  auto settings = resolved.section("model");
  // The one place where the global generator is seeded: torch::nn initialises from it.
  torch::manual_seed(derive_seed(static_cast<uint64_t>(seed), "init"));
  auto built = models().find(model).build(shape, settings);
  initialise(*built, init.options);
  return built;
}

std::unique_ptr<Measure> RunSettings::make_measure(const std::string& name) const {
  return make_measure(name, context());
}

std::unique_ptr<Measure> RunSettings::make_measure(const std::string& name,
                                                   const MeasureContext& of) const {
  auto settings = resolved.section("measure." + name);
  return measures().find(name).make(of, settings);
}

std::unique_ptr<Detector> RunSettings::make_detector(const std::string& name) const {
  auto settings = resolved.section("detector." + name);
  return detectors().find(name).make(context(), settings);
}

MeasureContext RunSettings::context() const {
  return {.temperature = measure.temperature > 0 ? measure.temperature : trained_temperature,
          .model = model,
          .loss = loss_name,
          .seed = static_cast<uint64_t>(seed),
          .memory = measure.memory};
}

std::function<torch::Tensor(const torch::Tensor&, const torch::Tensor&)> RunSettings::loss_at(
    double temperature) const {
  return [loss = train.loss, temperature](const auto& logits, const auto& labels) {
    const auto divisor = torch::tensor(temperature, logits.options().dtype(torch::kFloat64));
    return loss(logits, loss.targets(labels), divisor).loss;
  };
}

void RunSettings::check_classifies(const std::string& who) const {
  check(train.loss.classifies(), who, " needs a classifier, and train.loss=", loss_name,
        " trains none");
}

}  // namespace kelvin
