#include "kelvin/experiment/run/trajectory.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kelvin/formats/npz_file.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::trajectory_test {

std::vector<double> doubles_of(const Array& array) {
  std::vector<double> values(static_cast<size_t>(array.size()));
  std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

// A linear model whose logits the test sets by hand: all images get the bias.
class TrajectoryTest : public testing::Test {
 protected:
  TrajectoryTest() {
    settings_ = settings_of({});
    dataset_ = load_dataset(settings_.dataset, settings_.request);
    model_ = settings_.build_model({});
    context_.seconds = [this] { return now_; };
    set_bias(0, 1);
  }

  static RunSettings settings_of(const std::vector<std::string>& overrides) {
    Config config;
    for (const char* each :
         {"data.name=glyphs10", "data.train_samples=40", "data.test_samples=30", "model.name=mlp",
          "model.depth=1", "train.temperature=2", "measure.epoch_samples=20"}) {
      config.apply_override(each);
    }
    for (const auto& each : overrides) config.apply_override(each);
    return RunSettings::from(config);
  }

  void set_bias(int64_t label, double value) {
    torch::NoGradGuard no_grad;
    for (auto& parameter : model_->parameters()) parameter.zero_();
    model_->parameters()[1][label] = value;
  }

  void set_weight(uint64_t seed) {
    torch::NoGradGuard no_grad;
    auto weight = model_->parameters()[0];
    weight.copy_(noise(weight.sizes().vec(), seed));
  }

  Trajectory metrics() const { return {dataset_, ood_, settings_, log_, context_}; }

  TrainState state_at(int64_t epoch) const {
    return {.model = *model_,
            .options = settings_.train,
            .epoch = epoch,
            .step = 10 * epoch,
            .total_steps = 100,
            .steps_per_epoch = 10,
            .learning_rate = 0.25,
            .temperature = 2,
            .loss = 0.75,
            .images = 400 * epoch};
  }

  std::vector<nlohmann::ordered_json> lines() const { return load_run(folder_.path()).metrics; }

  double now_ = 50;
  TemporaryFolder temporary_;
  RunFolder folder_ = RunFolder::create(temporary_ / "run", {}, nlohmann::ordered_json::object());
  RunContext context_;
  RunLog log_{folder_, context_, 0};
  RunSettings settings_;
  Dataset dataset_;
  std::vector<Dataset> ood_;
  std::shared_ptr<Model> model_;
};

TEST_F(TrajectoryTest, WriteWhatTheLogitsAre) {
  auto observer = metrics();
  set_bias(0, 3);
  observer.before_training(state_at(0));
  const auto line = lines().at(0);
  // 20 samples with the logits (3, 0, ..., 0).
  EXPECT_NEAR(line.at("logits_norm"), 3 * std::sqrt(20), 1e-9);
  EXPECT_NEAR(line.at("logits_norm_over_t"), 1.5 * std::sqrt(20), 1e-9);
  EXPECT_NEAR(line.at("logits_norm_per_sample"), 3, 1e-9);
  EXPECT_EQ(line.at("solution_rank"), 1);
  EXPECT_EQ(line.at("post_softmax_rank"), 1);
  EXPECT_EQ(line.at("temperature"), 2);
}

TEST_F(TrajectoryTest, TellTheShareOfRightAnswers) {
  auto observer = metrics();
  observer.before_training(state_at(0));
  // Everything is taken for class 0, of which a tenth of the samples are, give or take the choice.
  const double accuracy = lines().at(0).at("test_accuracy");
  const double log_sum = std::log(std::exp(0.5) + 9);
  EXPECT_NEAR(lines().at(0).at("test_loss"), log_sum - 0.5 * accuracy, 1e-6);
  EXPECT_DOUBLE_EQ(accuracy * 20, std::round(accuracy * 20));
}

TEST_F(TrajectoryTest, TakeTheLossFromTrainingOnceThereIsOne) {
  auto observer = metrics();
  observer.before_training(state_at(0));
  observer.after_epoch(state_at(1));
  const auto all = lines();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_NE(all[0].at("loss"), 0.75);
  EXPECT_EQ(all[1].at("loss"), 0.75);
  EXPECT_EQ(all[1].at("epoch"), 1);
  EXPECT_EQ(all[1].at("step"), 10);
  EXPECT_EQ(all[1].at("lr"), 0.25);
}

TEST_F(TrajectoryTest, DoNotChargeTrainingForTheirOwnTime) {
  // Each look at the clock while observing takes a second.
  context_.seconds = [this] { return now_ += 1; };
  auto observer = metrics();
  observer.before_training(state_at(0));
  now_ += 9;  // training
  observer.after_epoch(state_at(1));
  const auto line = lines().at(1);
  const double seconds = line.at("seconds");
  EXPECT_GE(seconds, 9);
  EXPECT_LE(seconds, 11);
  EXPECT_DOUBLE_EQ(line.at("images_per_second"), 400 / seconds);
}

TEST_F(TrajectoryTest, MeasureHowMuchTheNormGrew) {
  auto observer = metrics();
  set_bias(0, 2);
  observer.before_training(state_at(0));
  set_bias(1, 7);
  observer.after_epoch(state_at(1));
  const auto growth = observer.norm_growth().value();
  EXPECT_EQ(growth.name, "logits_norm_growth");
  EXPECT_NEAR(growth.value, 3.5, 1e-9);
  EXPECT_EQ(growth.definition.at("samples"), 20);
}

TEST_F(TrajectoryTest, KeepTheSpectrumOfEachLine) {
  auto observer = metrics();
  set_bias(0, 2);
  observer.before_training(state_at(0));
  set_bias(0, 6);
  observer.after_epoch(state_at(1));
  log_.write_curves();
  const auto curves = read_npz(folder_.path() / "curves.npz");
  EXPECT_EQ(doubles_of(curves.at("epochs")), (std::vector<double>{0, 1}));
  ASSERT_EQ(curves.at("logits_singular_values").shape, (std::vector<int64_t>{2, 10}));
  const auto values = doubles_of(curves.at("logits_singular_values"));
  // Without its mean, (a, 0, ..., 0) has the length a sqrt(1 - 1 / 10).
  EXPECT_NEAR(values[0], 2 * std::sqrt(20 * 0.9), 1e-6);
  EXPECT_NEAR(values[10], 6 * std::sqrt(20 * 0.9), 1e-6);
  EXPECT_NEAR(values[1], 0, 1e-5);
}

TEST_F(TrajectoryTest, LookAlsoAtLogSpacedSteps) {
  settings_.measure.steps_per_decade = 1;
  auto observer = metrics();
  observer.before_training(state_at(0));
  for (int64_t step = 1; step <= 20; ++step) {
    auto state = state_at(step / 10);
    state.step = step;
    observer.after_step(state);
    if (step % 10 == 0) observer.after_epoch(state);
  }
  std::vector<double> steps;
  std::vector<double> epochs;
  for (const auto& line : lines()) {
    steps.push_back(line.at("step"));
    epochs.push_back(line.at("epoch"));
  }
  EXPECT_EQ(steps, (std::vector<double>{0, 1, 10, 20}));
  EXPECT_EQ(epochs, (std::vector<double>{0, 0.1, 1, 2}));
}

TEST_F(TrajectoryTest, TellHowSymmetricTheLossIs) {
  auto observer = metrics();
  set_bias(0, 0);
  observer.before_training(state_at(0));
  const auto line = lines().at(0);
  EXPECT_NEAR(line.at("entropy_ratio"), 1, 1e-9);
  EXPECT_NEAR(line.at("loss_spread"), 0, 1e-7);
  EXPECT_NEAR(line.at("loss_distance"), 0, 1e-9);
  EXPECT_NEAR(line.at("probability_cosine"), 1, 1e-9);
}

// 20 images in batches of 10: each view has 19 candidates.
TEST_F(TrajectoryTest, TellHowWellViewsAreToldWhereThereIsNoClassifier) {
  settings_ = settings_of({"train.loss=info_nce", "train.loss_dimensions=10", "train.batch_size=10",
                           "data.augment=crop-flip"});
  auto observer = metrics();
  observer.before_training(state_at(0));  // all embeddings are equal
  set_weight(3);
  observer.after_epoch(state_at(1));
  const auto all = lines();
  for (const char* name : {"accuracy", "train_accuracy", "test_accuracy", "post_softmax_rank",
                           "entropy_ratio", "loss_distance"}) {
    EXPECT_FALSE(all[0].contains(name)) << name;
  }
  for (const char* name : {"loss", "train_loss", "test_loss"}) {
    EXPECT_NEAR(all[0].at(name), std::log(19), 1e-9) << name;
  }
  EXPECT_LT(all[0].at("train_view_accuracy"), 0.2);
  EXPECT_LT(all[1].at("train_loss"), std::log(19));
  EXPECT_EQ(all[1].at("loss"), 0.75);
  EXPECT_GT(all[1].at("test_view_accuracy"), 0.1);
  EXPECT_EQ(observer.test_accuracy(), all[1].at("test_view_accuracy").get<double>());
  const auto seen = seen_before(all, /*classifies=*/false, "metrics");
  EXPECT_EQ(seen.test_accuracy, observer.test_accuracy());
  EXPECT_EQ(error_of([&] { seen_before(all, /*classifies=*/true, "metrics"); }),
            "metrics: line 2: test_accuracy: is missing");
}

TEST_F(TrajectoryTest, UseTheTemperatureOfTheMoment) {
  auto observer = metrics();
  set_bias(0, 3);
  auto state = state_at(0);
  state.temperature = 6;
  observer.before_training(state);
  EXPECT_EQ(lines().at(0).at("temperature"), 6);
  EXPECT_NEAR(lines().at(0).at("logits_norm_over_t"), 0.5 * std::sqrt(20), 1e-9);
}

TEST_F(TrajectoryTest, LookAtTheAverageOfTheWeights) {
  set_bias(0, 3);
  WeightEma average(*model_, 0.9);
  set_bias(0, 5);
  auto state = state_at(1);
  state.ema = &average;
  auto observer = metrics();
  observer.after_epoch(state);
  EXPECT_NEAR(lines().at(0).at("logits_norm_per_sample"), 3, 1e-6);
  EXPECT_EQ(model_->parameters()[1][0].item<double>(), 5);
}

TEST_F(TrajectoryTest, MeasureMoreIfAskedTo) {
  settings_.measure.during = {"linear_probe"};
  auto observer = metrics();
  observer.before_training(state_at(0));
  EXPECT_NE(whole_file(folder_.path() / "trajectory.jsonl").find("probe_accuracy"),
            std::string::npos);
}

TEST_F(TrajectoryTest, KeepTheHeatMapsOfEachLook) {
  settings_.measure.during = {"layer_spectrum", "alignment"};
  auto observer = metrics();
  set_weight(1);
  observer.before_training(state_at(0));
  const auto cosines_at = [&](int64_t step) {
    const auto curves =
        read_npz(folder_.path() / "trajectory" / ("step-" + std::to_string(step) + ".npz"));
    EXPECT_EQ(curves.size(), 1U);  // none of the spectra
    return doubles_of(curves.begin()->second);
  };
  const auto first = cosines_at(0);
  set_weight(2);
  observer.after_epoch(state_at(1));
  EXPECT_EQ(cosines_at(0), first);
  EXPECT_NE(cosines_at(10), first);
  // What the lines have is the largest of them.
  const auto trajectory = load_run(folder_.path()).trajectory;
  ASSERT_EQ(trajectory.size(), 2U);
  for (const auto& line : trajectory) {
    const auto cosines = cosines_at(line.step);
    const auto reading = std::find_if(line.readings.begin(), line.readings.end(), [](auto& each) {
      return each.name == "alignment" && !each.layer.empty();
    });
    ASSERT_NE(reading, line.readings.end());
    EXPECT_EQ(reading->value, *std::max_element(cosines.begin(), cosines.end()));
  }
}

TEST_F(TrajectoryTest, KeepNoCurvesUnlessTheyAreMeasured) {
  settings_.measure.during = {"layer_spectrum"};
  auto observer = metrics();
  observer.before_training(state_at(0));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "trajectory"));
}

// With a step per decade: at the beginning, at steps 1, 10 and 100, which is the last.
TEST_F(TrajectoryTest, MeasureMoreOnlyAtTheStepsAskedFor) {
  settings_.measure.during = {"layer_spectrum"};
  settings_.measure.steps_per_decade = 1;
  auto observer = metrics();
  observer.before_training(state_at(0));
  const auto close_looks = [&] {
    const auto text = whole_file(folder_.path() / "trajectory.jsonl");
    int64_t count = 0;
    for (size_t at = text.find("\"covariance_rank\""); at != std::string::npos;
         at = text.find("\"covariance_rank\"", at + 1)) {
      ++count;
    }
    return count;
  };
  const auto each = close_looks();
  ASSERT_GT(each, 0);
  observer.after_epoch(state_at(1));
  EXPECT_EQ(close_looks(), 2 * each);
  for (int64_t epoch = 2; epoch < 10; ++epoch) observer.after_epoch(state_at(epoch));
  EXPECT_EQ(close_looks(), 2 * each);
  observer.after_epoch(state_at(10));
  EXPECT_EQ(close_looks(), 3 * each);
}

TEST_F(TrajectoryTest, GoOnFromWhatIsWritten) {
  {
    auto observer = metrics();
    set_bias(0, 2);
    observer.before_training(state_at(0));
  }
  auto observer = metrics();
  observer.set_seconds_before(100);
  observer.before_training(state_at(1));
  EXPECT_EQ(lines().size(), 1U);  // nothing is looked at twice
  set_bias(0, 8);
  now_ += 5;
  observer.after_epoch(state_at(2));
  EXPECT_NEAR(observer.norm_growth().value().value, 4, 1e-9);
  EXPECT_DOUBLE_EQ(lines().at(1).at("seconds"), 105);
}

TEST(LogSpacedSteps, AreEvenInTheirLogarithm) {
  EXPECT_EQ(log_spaced_steps(1, 1000), (std::vector<int64_t>{1, 10, 100, 1000}));
  EXPECT_EQ(log_spaced_steps(3, 99), (std::vector<int64_t>{1, 2, 5, 10, 22, 46}));
  EXPECT_TRUE(log_spaced_steps(0, 1000).empty());
}

TEST_F(TrajectoryTest, LeaveTheModelInTrainingMode) {
  model_->train();
  auto observer = metrics();
  observer.before_training(state_at(0));
  EXPECT_TRUE(model_->is_training());
}

TEST_F(TrajectoryTest, KnowNoGrowthFromNothing) {
  EXPECT_FALSE(metrics().norm_growth().has_value());
}

}  // namespace kelvin::trajectory_test
