#include "kelvin/experiment/evaluate/measure_model.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/support/errors.h"

namespace kelvin::measure_model_test {

class MeasureModel : public testing::Test {
 protected:
  static RunSettings settings_of(const std::vector<std::string>& overrides) {
    Config config;
    for (const char* each : {"data.name=glyphs10", "data.train_samples=100", "data.test_samples=60",
                             "model.name=mlp", "model.width=12", "model.depth=2",
                             "measure.train_samples=50", "measure.linear_probe.max_iterations=5"}) {
      config.apply_override(each);
    }
    for (const auto& each : overrides) config.apply_override(each);
    return RunSettings::from(config);
  }

  Measured measured(const std::vector<std::string>& overrides,
                    const std::vector<Dataset>& ood = {}) {
    const auto settings = settings_of(overrides);
    model_ = settings.build_model({});
    return measure_model(*model_, dataset_, ood, settings, context_);
  }

  // The test images themselves under another name.
  Dataset twin() const {
    auto ood = dataset_;
    ood.name = "twin";
    return ood;
  }

  Dataset dataset_ = load_dataset("glyphs10", {.train_samples = 100, .test_samples = 60});
  RunContext context_;
  std::shared_ptr<Model> model_;
};

const Reading& find(const Readings& readings, const std::string& name, const std::string& split,
                    const std::string& detector = "") {
  for (const auto& reading : readings) {
    if (reading.name == name && reading.split == split && reading.detector == detector) {
      return reading;
    }
  }
  static const Reading none{.name = "none"};
  ADD_FAILURE() << "no reading " << name << " of " << split;
  return none;
}

TEST_F(MeasureModel, SeesTheWholeTestSplitAndASampleOfTheTrainingSplit) {
  const auto readings = measured({"measure.names=[\"accuracy\"]"}).readings;
  EXPECT_EQ(find(readings, "accuracy", "test").definition.at("samples"), 60);
  EXPECT_EQ(find(readings, "accuracy", "train").definition.at("samples"), 50);
}

TEST_F(MeasureModel, CountsTheRightAnswersOfAConstantModel) {
  const auto settings = settings_of({"measure.names=[\"accuracy\"]"});
  const auto model = settings.build_model({});
  {
    torch::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) parameter.zero_();
    model->parameters().back()[4] = 1;
  }
  const auto readings = measure_model(*model, dataset_, {}, settings, context_).readings;
  const double share = (dataset_.test.labels == 4).to(torch::kFloat64).mean().item<double>();
  EXPECT_GT(share, 0);
  EXPECT_DOUBLE_EQ(find(readings, "accuracy", "test").value, share);
}

TEST_F(MeasureModel, KeepsTheOrderOfTheMeasures) {
  const auto readings =
      measured({"measure.names=[\"logits_norm\", \"post_softmax_rank\", \"accuracy\"]"}).readings;
  const auto place = [&](const std::string& name) {
    return std::find_if(readings.begin(), readings.end(),
                        [&](const auto& reading) { return reading.name == name; });
  };
  EXPECT_EQ(place("logits_norm"), readings.begin());
  EXPECT_LT(place("logits_norm"), place("post_softmax_rank"));
  EXPECT_LT(place("post_softmax_rank"), place("accuracy"));
  EXPECT_NE(place("accuracy"), readings.end());
}

TEST_F(MeasureModel, IsSilentAboutLittleMemoryAndTakesNoMoreThanAllowed) {
  std::vector<std::string> said;
  context_.inform = [&](const std::string& text) { said.push_back(text); };
  const auto result = measured({"measure.names=[\"layer_spectrum\"]", "measure.memory=1TiB"});
  EXPECT_EQ(said, std::vector<std::string>());
  EXPECT_FALSE(result.curves.empty());
  const auto message = error_of([&] {
    measured({"measure.names=[\"layer_spectrum\"]", "measure.memory=1KiB"});
  });
  EXPECT_TRUE(message.starts_with("measure.memory: the measures need ")) << message;
}

TEST_F(MeasureModel, ShowsEveryLayerItsSampleAndItsGradients) {
  const auto readings =
      measured({"measure.names=[\"alignment\", \"gradient_rank\", \"layer_similarity\"]"}).readings;
  for (const char* name : {"alignment", "gradient_rank", "cka"}) {
    EXPECT_TRUE(std::any_of(readings.begin(), readings.end(), [&](const auto& reading) {
      return reading.name == name && !reading.layer.empty();
    })) << name;
  }
}

TEST_F(MeasureModel, CannotTellADatasetFromItself) {
  for (const char* detector : {"msp", "neco"}) {
    const auto result = measured(
        {"measure.names=[]", std::string("measure.detectors=[\"") + detector + "\"]"}, {twin()});
    EXPECT_DOUBLE_EQ(find(result.readings, "auroc", "test", detector).value, 0.5);
    ASSERT_EQ(result.scores.size(), 1U);
    EXPECT_EQ(result.scores[0].id_scores, result.scores[0].ood_scores);
    EXPECT_EQ(result.scores[0].id_scores.size(), 60U);
    EXPECT_EQ(result.scores[0].ood, "twin");
  }
}

TEST_F(MeasureModel, SaysOfEachDetectionWhatItMeans) {
  const auto readings =
      measured({"measure.names=[]", "measure.detectors=[\"msp\"]"}, {twin()}).readings;
  ASSERT_EQ(readings.size(), 6U);
  EXPECT_EQ(readings.back().name, "orthodev");
  for (const auto& reading : readings) {
    EXPECT_EQ(reading.ood, "twin");
    EXPECT_EQ(reading.definition.at("ood_samples"), 60);
    if (reading.name == "orthodev") continue;
    EXPECT_EQ(reading.definition.at("train_samples"), 50);
    EXPECT_EQ(reading.definition.at("id_samples"), 60);
    const bool is_ood_positive = reading.name == "aupr_out" || reading.name == "fpr95_ood";
    EXPECT_EQ(reading.definition.at("positive"),
              is_ood_positive ? "out of distribution" : "in distribution")
        << reading.name;
  }
}

// Of all detectors those that look at features alone; gradients are of two views of each image.
TEST_F(MeasureModel, LeavesOutWhatNeedsAClassifierWhereThereIsNone) {
  const auto settings =
      settings_of({"data.augment=crop-flip", "train.loss=info_nce", "train.loss_dimensions=6",
                   "measure.detectors=[\"all\"]", "measure.gradient_samples=9",
                   R"(measure.names=["gradient_rank", "linear_probe"])"});
  model_ = settings.build_model(shape_for(settings, dataset_));
  const auto result = measure_model(*model_, dataset_, {twin()}, settings, context_);
  std::set<std::string> detectors;
  for (const auto& scores : result.scores) detectors.insert(scores.detector);
  EXPECT_EQ(detectors, (std::set<std::string>{"cosine", "knn", "mahalanobis", "neco",
                                              "relative_mahalanobis"}));
  const auto rank = std::find_if(result.readings.begin(), result.readings.end(),
                                 [](auto& each) { return each.name == "gradient_rank"; });
  ASSERT_NE(rank, result.readings.end());
  EXPECT_EQ(rank->definition.at("samples"), 18);
  EXPECT_EQ(rank->definition.at("loss"), "info_nce");
  EXPECT_TRUE(std::any_of(result.readings.begin(), result.readings.end(),
                          [](auto& each) { return each.name == "kappa"; }));
}

TEST_F(MeasureModel, DetectsInEachOodDataset) {
  auto other = twin();
  other.name = "other";
  const auto result =
      measured({"measure.names=[]", "measure.detectors=[\"msp\", \"neco\"]"}, {twin(), other});
  std::set<std::string> pairs;
  for (const auto& scores : result.scores) pairs.insert(scores.detector + "@" + scores.ood);
  EXPECT_EQ(pairs, (std::set<std::string>{"msp@other", "msp@twin", "neco@other", "neco@twin"}));
}

TEST_F(MeasureModel, NeedsNoDetectorWithoutOodDatasets) {
  const auto result = measured({"measure.names=[\"logits_norm\"]"});
  EXPECT_TRUE(result.scores.empty());
  EXPECT_EQ(result.readings.size(), 3U);
}

TEST_F(MeasureModel, DoesNotMixOodImagesIntoOtherMeasures) {
  const std::string names =
      "measure.names=[\"accuracy\", \"logits_norm\", \"solution_rank\", \"linear_probe\"]";
  const auto alone = measured({names}).readings;
  const auto together =
      measured({names}, {load_dataset("textures10", {.train_samples = 100, .test_samples = 60})})
          .readings;
  for (const char* name : {"accuracy", "logits_norm", "solution_rank", "probe_accuracy"}) {
    EXPECT_EQ(find(together, name, "test").value, find(alone, name, "test").value) << name;
  }
}

TEST_F(MeasureModel, ProbesOodDatasetsToo) {
  std::set<std::string> probed;
  for (const auto& reading : measured({"measure.names=[\"linear_probe\"]"}, {twin()}).readings) {
    if (reading.name == "probe_accuracy") probed.insert(reading.ood + "/" + reading.layer);
  }
  EXPECT_EQ(probed,
            (std::set<std::string>{"/layers.0", "/layers.1", "twin/layers.0", "twin/layers.1"}));
}

TEST_F(MeasureModel, TellsHowFarItIs) {
  std::vector<std::string> notes;
  context_.report_progress = [&](const Progress& progress) {
    EXPECT_EQ(progress.phase, "measure");
    EXPECT_EQ(progress.total, 2);
    EXPECT_EQ(progress.done, static_cast<int64_t>(notes.size()));
    notes.push_back(progress.note);
  };
  measured({"measure.names=[\"accuracy\", \"logits_norm\"]"});
  EXPECT_EQ(notes, (std::vector<std::string>{"accuracy", "logits_norm"}));
}

TEST_F(MeasureModel, LeavesTheModelInTheModeItWasIn) {
  measured({"measure.names=[\"accuracy\"]"});
  EXPECT_TRUE(model_->is_training());
}

TEST_F(MeasureModel, ShowsOodTrainingImagesOnlyToThoseWhoLookAtThem) {
  int64_t asked = 0;  // once for every batch, and before every measure
  context_.should_stop = [&] {
    ++asked;
    return false;
  };
  const auto batches_of_twin = [&](const std::string& name) {
    asked = 0;
    measured({"measure.names=[\"" + name + "\"]", "measure.detectors=[]"});
    const auto alone = asked;
    asked = 0;
    measured({"measure.names=[\"" + name + "\"]", "measure.detectors=[]"}, {twin()});
    return asked - alone;
  };
  EXPECT_EQ(batches_of_twin("neural_collapse"), 1);
  EXPECT_EQ(batches_of_twin("linear_probe"), 2);
}

}  // namespace kelvin::measure_model_test
