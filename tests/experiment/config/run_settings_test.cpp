#include "kelvin/experiment/config/run_settings.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/errors.h"

namespace kelvin::run_settings_test {

// A model that is built at once, and what the test sets.
Config small_config(const std::vector<std::string>& overrides = {}) {
  Config config;
  config.set("model.name", "mlp");
  config.set("model.width", 4);
  config.set("model.depth", 2);
  for (const auto& each : overrides) config.apply_override(each);
  return config;
}

RunSettings settings_of(const std::vector<std::string>& overrides = {}) {
  return RunSettings::from(small_config(overrides));
}

std::string rejected(const std::string& override) {
  return error_of([&] { settings_of({override}); });
}

TEST(RunSettings, KnowsWhichDataAreWanted) {
  const auto settings =
      settings_of({"data.name=glyphs10", "data.classes=[\"4\"]", "data.ood=[\"textures10\"]",
                   "data.ood_classes=[\"3\"]", "data.validation_samples=500",
                   "data.test_on=validation", "data.subset_seed=7", "data.augment=crop-flip",
                   "data.image_size=16", "data.crop_share=0.5", "data.cache_images=true",
                   "data.image_root=/pictures", "data.normalisation=imagenet", "data.upsample=48"});
  EXPECT_EQ(settings.request.classes, std::vector<std::string>{"4"});
  EXPECT_EQ(settings.ood_classes, std::vector<std::string>{"3"});
  EXPECT_EQ(settings.request.validation_samples, 500);
  EXPECT_TRUE(settings.request.test_on_validation);
  EXPECT_EQ(settings.request.subset_seed, 7U);
  EXPECT_EQ(settings.train.augmentation, Augmentation::crop_flip);
  EXPECT_EQ(settings.request.image_size, 16);
  EXPECT_EQ(settings.request.crop_share, 0.5);
  EXPECT_TRUE(settings.request.cache_images);
  EXPECT_EQ(settings.request.image_root, "/pictures");
  EXPECT_EQ(settings.request.normalisation, Normalisation::imagenet);
  EXPECT_EQ(settings.request.upsample_to, 48);
}

// A loss that tells views of images apart, and trains no classifier.
RunSettings without_classifier(const std::vector<std::string>& overrides = {}) {
  auto all = overrides;
  all.insert(all.begin(),
             {"data.name=glyphs10", "data.ood=[\"textures10\"]", "data.augment=crop-flip",
              "train.loss=info_nce", "train.loss_dimensions=7"});
  return settings_of(all);
}

TEST(RunSettings, WithoutAClassifierHaveAsManyOutputsAsTheLossWants) {
  const auto settings = without_classifier();
  EXPECT_FALSE(settings.train.loss.classifies());
  const auto dataset = load_dataset("glyphs10", {.train_samples = 10, .test_samples = 10});
  const auto shape = shape_for(settings, dataset);
  EXPECT_EQ(shape.classes, 7);
  const auto model = settings.build_model(shape);
  EXPECT_EQ(model->forward(torch::zeros({2, 3, 32, 32})).size(1), 7);
  EXPECT_EQ(shape_for(settings_of({"data.name=glyphs10"}), dataset).classes, 10);
}

TEST(RunSettings, WithoutAClassifierMeasureNoneUnlessAskedTo) {
  EXPECT_EQ(without_classifier().measure.names,
            (std::vector<std::string>{"logits_norm", "solution_rank"}));
  EXPECT_EQ(RunSettings::from(without_classifier().resolved).resolved.to_toml(),
            without_classifier().resolved.to_toml());
  for (const auto& [key, name] :
       {std::pair("measure.names", "accuracy"), std::pair("measure.names", "calibration"),
        std::pair("measure.names", "neural_collapse"), std::pair("measure.names", "loss_symmetry"),
        std::pair("measure.during", "post_softmax_rank"), std::pair("measure.detectors", "msp"),
        std::pair("measure.detectors", "vim")}) {
    EXPECT_EQ(error_of([&] { without_classifier({std::string(key) + "=[\"" + name + "\"]"}); }),
              std::string(key) + ": '" + name +
                  "' needs a classifier, and train.loss=info_nce trains none");
  }
  EXPECT_NO_THROW(without_classifier({R"(measure.names=["linear_probe", "layer_spectrum"])",
                                      R"(measure.during=["alignment", "gradient_rank"])",
                                      R"(measure.detectors=["neco", "knn"])"}));
  EXPECT_NO_THROW(without_classifier({"measure.detectors=[\"all\"]"}));
}

TEST(RunSettings, RejectsEqualViews) {
  EXPECT_EQ(error_of([] { without_classifier({"data.augment=none"}); }),
            "data.augment: must not be none for train.loss=info_nce: two equal views of an image "
            "teach nothing");
}

TEST(RunSettings, TellsALossOfTwoViewsWhichRowsShowTheSameImage) {
  const auto embeddings = torch::eye(2, torch::kFloat64).repeat({2, 1});
  const auto loss = without_classifier().loss_at(0.5)(embeddings, torch::tensor({4, 4, 4, 4}));
  EXPECT_NEAR(loss.item<double>(), std::log1p(2 * std::exp(-2)), 1e-12);
}

TEST(RunSettings, RejectsDataThatCannotBe) {
  EXPECT_EQ(rejected("data.test_on=train"),
            "data.test_on: must be test or validation, got 'train'");
  EXPECT_EQ(rejected("data.test_on=validation"),
            "data.test_on: to test on validation images, set data.validation_samples above 0");
  EXPECT_EQ(rejected("data.subset_seed=-1"), "data.subset_seed: must not be below 0, got -1");
  EXPECT_EQ(rejected("data.image_size=5000"),
            "data.image_size: must be from 0 (the dataset's own) to 4096, got 5000");
  EXPECT_EQ(rejected("data.upsample=-1"),
            "data.upsample: must be from 0 (not at all) to 4096, got -1");
  EXPECT_EQ(rejected("data.crop_share=0"), "data.crop_share: must be from 0.01 to 1, got 0");
  EXPECT_EQ(rejected("data.classes=[\"101\"]"), "data.classes: must be from 2 to 100, got 101");
  EXPECT_TRUE(rejected("data.augment=mixup").starts_with("data.augment: must be one of"));
  EXPECT_EQ(rejected("data.name=imagefolder:/nowhere"), "imagefolder:/nowhere: no such folder");
}

TEST(RunSettings, TakesWhatTheConfigSays) {
  const auto settings = settings_of(
      {"seed=3", "data.name=glyphs10", "data.ood=[\"textures10\"]", "data.train_samples=50",
       "data.test_samples=40", "train.temperature=2.5", "train.epochs=7", "train.batch_size=64",
       "train.lr=0.3", "train.schedule=constant", "train.warmup_epochs=0.5", "train.momentum=0.8",
       "train.nesterov=true", "train.weight_decay=0", "measure.names=[\"accuracy\"]",
       "measure.detectors=[\"msp\"]", "measure.train_samples=30", "measure.epoch_samples=20"});
  EXPECT_EQ(settings.seed, 3);
  EXPECT_EQ(settings.dataset, "glyphs10");
  EXPECT_EQ(settings.ood, std::vector<std::string>{"textures10"});
  EXPECT_EQ(settings.request.train_samples, 50);
  EXPECT_EQ(settings.request.test_samples, 40);
  EXPECT_EQ(settings.model, "mlp");
  EXPECT_EQ(settings.train.temperature.first, 2.5);
  EXPECT_EQ(settings.train.epochs, 7);
  EXPECT_EQ(settings.train.batch_size, 64);
  EXPECT_EQ(settings.train.learning_rate, 0.3);
  EXPECT_EQ(settings.train.schedule, Schedule::constant);
  EXPECT_EQ(settings.train.warmup_epochs, 0.5);
  EXPECT_EQ(settings.train.optimizer.momentum, 0.8);
  EXPECT_TRUE(settings.train.optimizer.nesterov);
  EXPECT_EQ(settings.train.optimizer.weight_decay, 0);
  EXPECT_EQ(settings.train.seed, 3U);
  EXPECT_EQ(settings.measure.names, std::vector<std::string>{"accuracy"});
  EXPECT_EQ(settings.measure.detectors, std::vector<std::string>{"msp"});
  EXPECT_EQ(settings.measure.train_samples, 30);
  EXPECT_EQ(settings.measure.epoch_samples, 20);
  EXPECT_EQ(settings.context().temperature, 2.5);
  EXPECT_EQ(settings.context().seed, 3U);
}

TEST(RunSettings, LeavesNothingUnset) {
  const auto resolved = settings_of().resolved;
  for (const char* key : {"seed",
                          "data.name",
                          "data.ood",
                          "data.train_samples",
                          "data.test_samples",
                          "model.name",
                          "model.width",
                          "model.depth",
                          "train.temperature",
                          "train.epochs",
                          "train.batch_size",
                          "train.lr",
                          "train.schedule",
                          "train.warmup_epochs",
                          "train.momentum",
                          "train.nesterov",
                          "train.weight_decay",
                          "measure.names",
                          "measure.detectors",
                          "measure.train_samples",
                          "measure.epoch_samples",
                          "measure.solution_rank.gamma",
                          "measure.linear_probe.l2",
                          "detector.neco.dimensions"}) {
    EXPECT_TRUE(resolved.has(key)) << key;
  }
  EXPECT_EQ(resolved.at("train.temperature"), 1.0);
  EXPECT_EQ(resolved.at("train.schedule"), "cosine");
}

TEST(RunSettings, MeasuresAtTheTemperatureThatTrainingEndsWith) {
  const auto measured_at = [](const std::vector<std::string>& overrides) {
    return settings_of(overrides).context().temperature;
  };
  EXPECT_EQ(measured_at({"train.temperature=3"}), 3);
  EXPECT_EQ(measured_at({"train.temperature=3", "train.temperature_schedule=linear",
                         "train.temperature_end=8"}),
            8);
  EXPECT_DOUBLE_EQ(measured_at({"train.temperature=8", "train.temperature_schedule=step",
                                "train.temperature_factor=0.5", "train.epochs=3"}),
                   2);
  EXPECT_EQ(measured_at({"train.temperature=3", "measure.temperature=1.5"}), 1.5);
}

TEST(RunSettings, RejectsADeviceThatIsNotThere) {
  EXPECT_EQ(error_of([] { settings_of({"device=tpu"}); }),
            "device: must be cpu, cuda or cuda:N, got 'tpu'");
  if (!torch::cuda::is_available()) {
    EXPECT_EQ(error_of([] { settings_of({"device=cuda:1"}); }),
              "device: this machine or this LibTorch has no cuda:1");
  }
}

TEST(RunSettings, ResolvesWhatIsResolvedToItself) {
  const auto once = settings_of({"data.name=glyphs10", "train.lr=0.1", "seed=5"}).resolved;
  EXPECT_EQ(RunSettings::from(once).resolved.values(), once.values());
  const auto from_text = Config::parse(once.to_toml(), "text");
  EXPECT_EQ(RunSettings::from(from_text).resolved.to_toml(), once.to_toml());
}

TEST(RunSettings, BuildsTheSameWeightsForTheSameSeedOnly) {
  const auto first = settings_of({"seed=1"}).build_model({})->parameters();
  torch::manual_seed(77);
  EXPECT_TRUE(settings_of({"seed=1"}).build_model({})->parameters()[0].equal(first[0]));
  EXPECT_FALSE(settings_of({"seed=2"}).build_model({})->parameters()[0].equal(first[0]));
}

TEST(RunSettings, DrawsNoWeightsToCheckTheSettingsOfANetwork) {
  torch::manual_seed(5);
  const auto expected = torch::rand({4});
  torch::manual_seed(5);
  settings_of();
  EXPECT_TRUE(torch::rand({4}).equal(expected));
}

TEST(RunSettings, RejectsALayerThatATruncatedNetworkDoesNotHave) {
  const auto message = error_of([] {
    settings_of({"model.name=truncated", "model.of=mlp", "model.layer=conv1"});
  });
  EXPECT_TRUE(message.starts_with("model.layer: there is no layer 'conv1'; there are: layers.0"))
      << message;
}

TEST(RunSettings, MakesMeasuresAndDetectorsWithTheirOwnSettings) {
  const auto settings = settings_of({"measure.solution_rank.gamma=0.5", "train.temperature=4"});
  const auto measure = settings.make_measure("solution_rank");
  Record record;
  record.classes = 2;
  record.logits = torch::eye(2);
  record.labels = torch::tensor({0, 1});
  measure->update(record);
  EXPECT_EQ(measure->compute().at(0).definition.at("gamma"), 0.5);
  EXPECT_EQ(settings.make_detector("msp")->definition().at("temperature"), 4);
}

TEST(RunSettings, UnknownKeyNamesTheNearest) {
  EXPECT_EQ(rejected("train.temprature=3"),
            "train.temprature: no such setting; did you mean 'train.temperature'?");
  EXPECT_EQ(rejected("sed=3"), "sed: no such setting; did you mean 'seed'?");
  EXPECT_EQ(rejected("model.wdth=3"), "model.wdth: no such setting; did you mean 'model.width'?");
  EXPECT_EQ(rejected("measure.solution_rank.gama=0.1"),
            "measure.solution_rank.gama: no such setting; did you mean "
            "'measure.solution_rank.gamma'?");
  EXPECT_EQ(rejected("detector.neco.dimension=2"),
            "detector.neco.dimension: no such setting; did you mean 'detector.neco.dimensions'?");
}

TEST(RunSettings, UnknownSectionNamesTheNearest) {
  EXPECT_EQ(rejected("trian.lr=3"), "trian.lr: no section 'trian'; did you mean 'train'?");
  EXPECT_EQ(rejected("measure.solution_rnk.gamma=0.1"),
            "measure.solution_rnk.gamma: no section 'measure.solution_rnk'; did you mean "
            "'measure.solution_rank'?");
}

TEST(RunSettings, UnknownNamesNameTheNearest) {
  EXPECT_TRUE(rejected("data.name=glyphs1000").starts_with("no dataset named 'glyphs1000'; did"));
  EXPECT_TRUE(rejected("data.ood=[\"textures\"]").starts_with("no dataset named 'textures'; did"));
  EXPECT_TRUE(
      rejected("model.name=mlpp").starts_with("no model named 'mlpp'; did you mean 'mlp'?"));
  EXPECT_TRUE(rejected("measure.names=[\"acuracy\"]")
                  .starts_with("no measure named 'acuracy'; did you mean 'accuracy'?"));
  EXPECT_TRUE(rejected("measure.detectors=[\"neko\"]")
                  .starts_with("no detector named 'neko'; did you mean 'neco'?"));
}

TEST(RunSettings, RejectsTheTrainedDatasetAsAOodOne) {
  EXPECT_EQ(rejected("data.ood=[\"textures10\", \"glyphs100\"]"),
            "data.ood: must differ from data.name, got 'glyphs100' for both");
}

TEST(RunSettings, RejectsATemperatureThatIsNotAboveZero) {
  EXPECT_EQ(rejected("train.temperature=0"),
            "train.temperature: must be a finite number above 0, got 0");
  EXPECT_EQ(rejected("train.temperature=-1"),
            "train.temperature: must be a finite number above 0, got -1");
  EXPECT_EQ(rejected("train.temperature=nan"),
            "train.temperature: must be a finite number above 0, got nan");
  EXPECT_EQ(rejected("train.temperature=inf"),
            "train.temperature: must be a finite number above 0, got inf");
}

TEST(RunSettings, RejectsValuesOutOfRange) {
  EXPECT_EQ(rejected("seed=-1"), "seed: must not be below 0, got -1");
  EXPECT_EQ(rejected("data.train_samples=-1"),
            "data.train_samples: must be from 0 (all) to 100000000, got -1");
  EXPECT_EQ(rejected("data.test_samples=-2"),
            "data.test_samples: must be from 0 (all) to 100000000, got -2");
  EXPECT_EQ(rejected("train.epochs=0"), "train.epochs: must be from 1 to 1e+06, got 0");
  EXPECT_EQ(rejected("train.batch_size=1"), "train.batch_size: must be at least 2, got 1");
  EXPECT_EQ(rejected("train.lr=0.0"), "train.lr: must be a finite number above 0, got 0");
  EXPECT_EQ(rejected("train.schedule=linear"),
            "train.schedule: must be constant, cosine, step or one-cycle, got 'linear'");
  EXPECT_EQ(rejected("train.warmup_epochs=-0.5"),
            "train.warmup_epochs: must be from 0 to 1e+06 epochs, got -0.5");
  EXPECT_EQ(rejected("train.momentum=1.0"), "train.momentum: must be in [0, 1), got 1");
  EXPECT_EQ(rejected("train.momentum=nan"), "train.momentum: must be in [0, 1), got nan");
  EXPECT_EQ(rejected("train.weight_decay=-1.0"),
            "train.weight_decay: must be a finite number, not below 0, got -1");
  EXPECT_EQ(rejected("measure.train_samples=1"),
            "measure.train_samples: must be at least 2, got 1");
  EXPECT_EQ(rejected("measure.epoch_samples=1"),
            "measure.epoch_samples: must be at least 2, got 1");
  EXPECT_EQ(rejected("measure.solution_rank.gamma=1.0"),
            "measure.solution_rank.gamma: must be in (0, 1), got 1");
  EXPECT_EQ(rejected("model.width=0"), "model.width: must be from 1 to 65536, got 0");
}

// Numbers that float32 cannot hold would end as an internal error, or as NaN.
TEST(RunSettings, RejectsWhatFloat32CannotHold) {
  EXPECT_EQ(rejected("train.temperature=1e-46"),
            "train.temperature: must be from 1e-12 to 1e+12, got 1e-46");
  EXPECT_EQ(rejected("train.temperature=1e-30"),
            "train.temperature: must be from 1e-12 to 1e+12, got 1e-30");
  EXPECT_EQ(rejected("train.temperature=1e300"),
            "train.temperature: must be from 1e-12 to 1e+12, got 1e+300");
  EXPECT_EQ(rejected("measure.temperature=1e-46"),
            "measure.temperature: must be from 1e-30 to 1e+30, which float32 can hold, got 1e-46");
  for (const std::string key :
       {"train.lr", "train.weight_decay", "train.epsilon", "train.clip_norm", "train.head_lr_scale",
        "init.scale", "init.last_scale", "init.last_uniform", "train.decay_rate"}) {
    for (const std::string value : {"1e-46", "1e300"}) {
      const auto message = rejected((key + "=" + value).c_str());
      EXPECT_TRUE(message.starts_with(key + ": must be from 1e-30 to 1e+30, ")) << message;
    }
  }
  EXPECT_NO_THROW(settings_of({"train.temperature=1e-12"}));
  EXPECT_NO_THROW(settings_of({"train.temperature=1e12"}));
}

TEST(RunSettings, RejectsCountsThatWouldOverflow) {
  for (const std::string key : {"train.batch_size", "measure.train_samples",
                                "measure.epoch_samples", "measure.gradient_samples"}) {
    const auto message = rejected((key + "=9223372036854775807").c_str());
    EXPECT_EQ(message, key + ": must be at most 100000000, got 9223372036854775807");
  }
}

TEST(RunSettings, RejectsNesterovWithoutMomentum) {
  EXPECT_EQ(error_of([] {
              settings_of({"train.nesterov=true", "train.momentum=0"});
            }),
            "train.nesterov: needs a momentum above 0");
}

TEST(RunSettings, RejectsValuesOfAnotherType) {
  for (const char* override : {"train.epochs=many", "train.epochs=1.5", "train.lr=\"fast\"",
                               "train.nesterov=3", "data.name=3", "data.ood=3"}) {
    const auto message = rejected(override);
    const auto key = std::string(override).substr(0, std::string(override).find('='));
    EXPECT_TRUE(message.starts_with(key + ": ")) << message;
  }
}

}  // namespace kelvin::run_settings_test
