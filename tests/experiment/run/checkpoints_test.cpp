#include "kelvin/experiment/run/checkpoints.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/train_state.h"

namespace kelvin::checkpoints_test {

namespace fs = std::filesystem;

Checkpoint at_step(int64_t step, double value) {
  return {.training = {.epoch = 2,
                       .step = step,
                       .epoch_steps = 3,
                       .images = 1234,
                       .sums = {.loss = 0.1, .entropy = 1.0 / 3, .right = 17, .samples = 96},
                       .temperature = 2.5,
                       .weights = {{"weight", torch::full({2, 3}, value)},
                                   {"count", torch::tensor(int64_t{9})}},
                       .state = {{"generator", torch::arange(5, torch::kUInt8)},
                                 {"optimizer/weight/momentum", torch::rand({2, 3})}}},
          .seconds = 1e-7,
          .sizes = {{"metrics.jsonl", 77}},
          .stalls = {.steps = 4,
                     .entropy = 0.7,
                     .loss = 1e-9,
                     .accuracy = 0.25,
                     .uniform_spans = 2,
                     .is_stalled = true},
          .best_accuracy = 0.7};
}

class CheckpointTest : public testing::Test {
 protected:
  fs::path run() const { return folder_.path() / "run"; }
  fs::path link(const char* name) const { return run() / "checkpoints" / name; }

  void write(int64_t step, double value) const {
    write_checkpoint(run(), at_step(step, value));
    link_checkpoint(run(), CheckpointLink::last, step);
  }

  double last_value() const {
    return last_checkpoint(run())->training.weights.at("weight")[0][0].item<double>();
  }

  TemporaryFolder folder_;
};

TEST_F(CheckpointTest, IsReadAsItWasWritten) {
  torch::manual_seed(0);
  const auto written = at_step(40, 0.3);
  write_checkpoint(run(), written);
  link_checkpoint(run(), CheckpointLink::last, 40);
  const auto read = last_checkpoint(run()).value();
  EXPECT_EQ(read.training.epoch, 2);
  EXPECT_EQ(read.training.step, 40);
  EXPECT_EQ(read.training.epoch_steps, 3);
  EXPECT_EQ(read.training.images, 1234);
  EXPECT_EQ(read.training.sums.loss, 0.1);
  EXPECT_EQ(read.training.sums.entropy, 1.0 / 3);
  EXPECT_EQ(read.training.sums.right, 17);
  EXPECT_EQ(read.training.sums.samples, 96);
  EXPECT_EQ(read.training.temperature, 2.5);
  EXPECT_EQ(read.seconds, 1e-7);
  EXPECT_EQ(read.best_accuracy, 0.7);
  EXPECT_EQ(read.sizes, written.sizes);
  EXPECT_EQ(read.stalls.steps, 4);
  EXPECT_EQ(read.stalls.entropy, 0.7);
  EXPECT_EQ(read.stalls.loss, 1e-9);
  EXPECT_EQ(read.stalls.accuracy, 0.25);
  EXPECT_EQ(read.stalls.uniform_spans, 2);
  EXPECT_TRUE(read.stalls.is_stalled);
  for (const auto& [name, tensor] : written.training.weights) {
    EXPECT_TRUE(read.training.weights.at(name).equal(tensor)) << name;
  }
  for (const auto& [name, tensor] : written.training.state) {
    EXPECT_TRUE(read.training.state.at(name).equal(tensor)) << name;
  }
  EXPECT_EQ(saved_temperature(run()), 2.5);
}

TEST_F(CheckpointTest, IsWhatItsLinkPointsAt) {
  write(40, 1);
  EXPECT_EQ(fs::read_symlink(link("last")), "step-40");
  write(80, 2);
  EXPECT_EQ(last_value(), 2);
  EXPECT_TRUE(fs::exists(link("step-40")));
  EXPECT_FALSE(fs::exists(fs::symlink_status(link("last.part"))));
}

TEST_F(CheckpointTest, RemovesOnlyWhatNoLinkPointsAt) {
  write(40, 1);
  link_checkpoint(run(), CheckpointLink::best, 40);
  write(80, 2);
  write(120, 3);
  fs::create_directories(link("step-160.part"));
  remove_unlinked_checkpoints(run());
  EXPECT_TRUE(fs::exists(link("step-40")));
  EXPECT_FALSE(fs::exists(link("step-80")));
  EXPECT_TRUE(fs::exists(link("step-120")));
  EXPECT_FALSE(fs::exists(link("step-160.part")));
}

TEST_F(CheckpointTest, RecoversFromWhatAKilledProcessLeft) {
  fs::create_directories(link("step-40.part"));
  std::ofstream(link("step-40.part") / "model.safetensors") << "half";
  fs::create_directories(link("step-40"));
  fs::create_directory_symlink("step-7", link("last.part"));
  write(40, 1);
  EXPECT_EQ(last_value(), 1);
  EXPECT_FALSE(fs::exists(link("step-40.part")));
}

TEST_F(CheckpointTest, StillWorksWhenTheRunIsMoved) {
  write(40, 1);
  fs::rename(run(), folder_ / "moved");
  EXPECT_TRUE(fs::exists(last_weights(folder_ / "moved")));
  EXPECT_TRUE(last_checkpoint(folder_ / "moved").has_value());
}

TEST_F(CheckpointTest, MayNotBeThereYet) {
  EXPECT_FALSE(last_checkpoint(run()).has_value());
  EXPECT_FALSE(saved_temperature(run()).has_value());
  const auto message = error_of([&] { last_weights(run()); });
  EXPECT_TRUE(message.starts_with(run().string() + ": has no weights yet")) << message;
}

TEST_F(CheckpointTest, ThatCannotBeWrittenIsAnError) {
  fs::create_directories(run());
  std::ofstream(run() / "checkpoints") << "a file";
  const auto message = error_of([&] { write(1, 1); });
  EXPECT_NE(message.find("step-1.part: cannot be made"), std::string::npos) << message;
}

// As some tools copy folders: cp -rL makes folders of links.
TEST_F(CheckpointTest, WhoseLinksBecameFoldersIsReadAndLinkedAgain) {
  write(40, 1);
  link_checkpoint(run(), CheckpointLink::best, 40);
  write(80, 2);
  for (const auto& [name, step] : {std::pair("last", "step-80"), std::pair("best", "step-40")}) {
    fs::remove(link(name));
    fs::copy(link(step), link(name));
  }
  fs::remove_all(link("step-40"));  // of one of the two nothing but the copy is there
  EXPECT_EQ(last_value(), 2);
  EXPECT_EQ(last_weights(run()), link("last") / "model.safetensors");
  restore_links(run(), last_checkpoint(run()).value());
  EXPECT_EQ(fs::read_symlink(link("last")), "step-80");
  EXPECT_EQ(fs::read_symlink(link("best")), "step-40");
  EXPECT_TRUE(fs::exists(link("best") / "model.safetensors"));
  EXPECT_EQ(last_value(), 2);
  remove_unlinked_checkpoints(run());
  EXPECT_TRUE(fs::exists(link("step-40")));
}

// As rsync -r copies folders: links are left out.
TEST_F(CheckpointTest, WhoseLinksWereLostIsTheNewest) {
  auto first = at_step(9, 1);
  auto second = at_step(40, 2);
  auto third = at_step(100, 3);
  first.best_accuracy = 0.25;
  second.best_accuracy = third.best_accuracy = 0.5;
  for (const auto& each : {first, second, third}) write_checkpoint(run(), each);
  fs::create_directories(link("step-2000.part"));
  fs::create_directories(link("step-x"));
  EXPECT_EQ(last_value(), 3);
  EXPECT_EQ(saved_temperature(run()), third.training.temperature);
  restore_links(run(), last_checkpoint(run()).value());
  EXPECT_EQ(fs::read_symlink(link("last")), "step-100");
  EXPECT_EQ(fs::read_symlink(link("best")), "step-40") << "the first of accuracy 0.5";
}

TEST_F(CheckpointTest, WithNumbersThatNoTrainingHasIsAnError) {
  write(40, 1);
  const auto path = link("step-40") / "training.json";
  const auto facts = nlohmann::json::parse(read_file(path));
  const std::vector<std::pair<std::string, nlohmann::json>> damages = {
      {"epoch", -1},        {"step", int64_t{1} << 60}, {"images", 0.5},
      {"temperature", 0},   {"temperature", nullptr},   {"sizes", {{"metrics.jsonl", -4}}},
      {"sizes", "nothing"}, {"is_stalled", 1},          {"best_accuracy", "good"}};
  for (const auto& [key, value] : damages) {
    auto damaged = facts;
    damaged[key] = value;
    write_file_atomically(path, damaged.dump());
    const auto message = error_of([&] { last_checkpoint(run()); });
    EXPECT_TRUE(message.starts_with(path.string() + ": " + key + ": ")) << message;
  }
}

TEST_F(CheckpointTest, WithoutItsTrainingStateIsAnError) {
  write(40, 1);
  fs::remove(link("step-40") / "training.json");
  const auto message = error_of([&] { last_checkpoint(run()); });
  EXPECT_NE(message.find("has no training.json, so that training cannot go on from it"),
            std::string::npos)
      << message;
}

TEST_F(CheckpointTest, WithDamagedFactsIsOneLine) {
  write(40, 1);
  for (const char* content : {"", "[]", "{}", R"({"epoch": "two"})", "{\"epoch\": 1"}) {
    write_file_atomically(link("step-40") / "training.json", content);
    const auto message = error_of([&] { last_checkpoint(run()); });
    EXPECT_NE(message.find("training.json: "), std::string::npos) << content << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

namespace fs = std::filesystem;

class CheckpointsTest : public testing::Test {
 protected:
  Checkpoints checkpoints(const CheckpointSettings& settings = {}) {
    return {training_.run,
            settings,
            training_.log,
            {.seconds = [] { return 5.0; },
             .test_accuracy = [this] { return accuracy_; },
             .stalls = [] { return StallDetector::Sums{.uniform_spans = 1, .is_stalled = true}; }}};
  }

  std::set<std::string> folders() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(training_.run.path() / "checkpoints")) {
      if (!entry.is_symlink()) names.insert(entry.path().filename().string());
    }
    return names;
  }

  std::string target(const char* link) const {
    return fs::read_symlink(training_.run.path() / "checkpoints" / link).string();
  }

  ObservedTraining training_;
  double accuracy_ = 0.5;
};

using Names = std::set<std::string>;

TEST_F(CheckpointsTest, KeepTheOneBeforeWeightsThatAreNotFinite) {
  auto observer = checkpoints({.steps = 5});
  observer.after_epoch(training_.at(10));
  auto state = training_.at(15);
  state.snapshot = [] {
    return TrainSnapshot{.step = 15, .weights = {{"fc.weight", torch::full({2}, INFINITY)}}};
  };
  EXPECT_EQ(error_of([&] { observer.after_step(state); }),
            "train: 'fc.weight' is not finite after step 15 (T = 1, lr = 0.1), so the checkpoint "
            "before it is kept; try a smaller lr or a longer warm-up");
  EXPECT_EQ(target("last"), "step-10");
}

TEST_F(CheckpointsTest, AreSavedAfterEachEpochAndKeepTheLastAndTheBest) {
  auto observer = checkpoints();
  observer.after_epoch(training_.at(10));
  accuracy_ = 0.8;
  observer.after_epoch(training_.at(20));
  accuracy_ = 0.6;
  observer.after_epoch(training_.at(30));
  observer.after_epoch(training_.at(40));
  EXPECT_EQ(folders(), (Names{"step-20", "step-40"}));
  EXPECT_EQ(target("last"), "step-40");
  EXPECT_EQ(target("best"), "step-20");
  const auto last = last_checkpoint(training_.run.path()).value();
  EXPECT_EQ(last.best_accuracy, 0.8);
  EXPECT_EQ(last.seconds, 5);
}

TEST_F(CheckpointsTest, AreAllKeptIfAskedTo) {
  auto observer = checkpoints({.keeps_all = true});
  for (const int64_t step : {10, 20, 30}) observer.after_epoch(training_.at(step));
  EXPECT_EQ(folders(), (Names{"step-10", "step-20", "step-30"}));
}

TEST_F(CheckpointsTest, AreSavedEverySoManySteps) {
  auto observer = checkpoints({.steps = 4, .keeps_all = true});
  for (int64_t step = 1; step <= 20; ++step) {
    observer.after_step(training_.at(step));
    if (step % 10 == 0) observer.after_epoch(training_.at(step));
  }
  EXPECT_EQ(folders(), (Names{"step-4", "step-8", "step-10", "step-12", "step-16", "step-20"}));
}

TEST_F(CheckpointsTest, AreSavedWhenTrainingIsStopped) {
  auto observer = checkpoints();
  observer.after_epoch(training_.at(10));
  observer.at_stop(training_.at(13));
  EXPECT_EQ(target("last"), "step-13");
  EXPECT_EQ(target("best"), "step-10");
}

TEST_F(CheckpointsTest, KnowTheSizesOfWhatWasLogged) {
  training_.log.add_metrics({{"step", 0}, {"loss", 1.5}});
  auto observer = checkpoints();
  observer.after_epoch(training_.at(10));
  training_.log.add_metrics({{"step", 12}, {"loss", 1.25}});
  const auto last = last_checkpoint(training_.run.path()).value();
  RunLog::cut_back(training_.run.path(), last.sizes);
  EXPECT_EQ(whole_file(training_.run.path() / "metrics.jsonl"), "{\"step\":0,\"loss\":1.5}\n");
}

// Rewriting the folder that `last` points at would lose it to a crash in between.
TEST_F(CheckpointsTest, AreNotWrittenAgainWhereTheRunGoesOnFrom) {
  auto first = checkpoints();
  first.at_stop(training_.at(10));
  const auto before = fs::last_write_time(training_.run.path() / "checkpoints/step-10");
  auto second = checkpoints();
  second.start_from(last_checkpoint(training_.run.path()).value());
  second.after_epoch(training_.at(10));
  EXPECT_EQ(fs::last_write_time(training_.run.path() / "checkpoints/step-10"), before);
  EXPECT_EQ(target("best"), "step-10");
}

// A kill between the two links must not lose the best one.
TEST_F(CheckpointsTest, LinkTheBestBeforeTheLast) {
  auto observer = checkpoints();
  observer.after_epoch(training_.at(10));
  accuracy_ = 0.9;
  // A link that cannot be made ends the saving right there.
  fs::create_directories(training_.run.path() / "checkpoints/last.part/not empty");
  EXPECT_THROW(observer.after_epoch(training_.at(20)), Error);
  fs::remove_all(training_.run.path() / "checkpoints/last.part");
  EXPECT_EQ(target("best"), "step-20");
  EXPECT_EQ(target("last"), "step-10");
  EXPECT_EQ(last_checkpoint(training_.run.path())->best_accuracy, 0.5);
}

}  // namespace kelvin::checkpoints_test
