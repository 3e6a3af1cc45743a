#include "kelvin/experiment/tasks/bench_steps.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <chrono>
#include <cmath>
#include <memory>

#include "kelvin/data/batches.h"
#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/experiment/evaluate/trained_network.h"
#include "kelvin/model/description.h"
#include "kelvin/model/precision.h"
#include "kelvin/model/tensors_file.h"
#include "kelvin/model/weights.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin::bench_steps_test {

Config tiny_config(const std::vector<std::string>& more = {}) {
  Config config;
  for (const char* each : {"data.name=glyphs10", "model.name=mlp", "model.width=8", "model.depth=2",
                           "train.batch_size=4", "train.lr=0.05", "train.schedule=constant",
                           "train.warmup_epochs=0"}) {
    config.apply_override(each);
  }
  for (const auto& each : more) config.apply_override(each);
  return config;
}

// A clock that goes on by a second whenever it is looked at.
RunContext ticking_context() {
  RunContext context;
  context.seconds = [now = std::make_shared<double>(0)] { return ++*now; };
  return context;
}

struct BenchOutcome {
  BenchStart start = {};
  std::vector<TimedSteps> portions = {};

  std::vector<double> losses() const {
    std::vector<double> all;
    for (const auto& portion : portions) {
      all.insert(all.end(), portion.losses.begin(), portion.losses.end());
    }
    return all;
  }
};

BenchOutcome outcome_of(const Config& config, std::vector<int64_t> counts,
                        const std::filesystem::path& start = {}) {
  BenchOutcome outcome;
  counts.push_back(0);
  size_t next = 0;
  bench_steps({.settings = config,
               .start = start,
               .on_start = [&](const BenchStart& each) { outcome.start = each; },
               .next_count = [&] { return counts.at(next++); },
               .on_steps = [&](const TimedSteps& each) { outcome.portions.push_back(each); }},
              ticking_context());
  return outcome;
}

class LossRecorder : public TrainObserver {
 public:
  void after_step(const TrainState& state) override { losses.push_back(state.loss); }
  std::vector<double> losses;
};

TEST(StepBench, TakesTheStepsOfAnyTraining) {
  const auto config = tiny_config();
  const auto settings = RunSettings::from(config);
  const auto dataset = bench_dataset(settings);
  const auto model = prepared_model(settings, dataset);
  LossRecorder recorder;
  train(*model, dataset, settings.train, {&recorder}, [&] { return recorder.losses.size() >= 40; });

  // Into the second epoch, and whatever the portions.
  EXPECT_EQ(outcome_of(config, {3, 1, 36}).losses(), recorder.losses);
  EXPECT_GT(40, kBenchBatches);
}

TEST(StepBench, HandsOutPortionsAsTheyWereAskedFor) {
  const auto outcome = outcome_of(tiny_config(), {2, 5, 1});
  ASSERT_EQ(outcome.portions.size(), 3U);
  EXPECT_EQ(outcome.portions[0].losses.size(), 2U);
  EXPECT_EQ(outcome.portions[1].losses.size(), 5U);
  EXPECT_EQ(outcome.portions[2].losses.size(), 1U);
  for (const double loss : outcome.losses()) EXPECT_TRUE(std::isfinite(loss)) << loss;
}

TEST(StepBench, HasPartsWithinTheWhole) {
  for (const auto& portion : outcome_of(tiny_config(), {2, 5}).portions) {
    const auto steps = static_cast<double>(portion.losses.size());
    // By a clock that ticks when it is asked, each part of a step takes one second.
    EXPECT_EQ(portion.data, steps);
    EXPECT_EQ(portion.forward, steps);
    EXPECT_EQ(portion.backward, steps);
    EXPECT_EQ(portion.optimizer, steps);
    EXPECT_GE(portion.seconds, 4 * steps);
  }
}

TEST(StepBench, DoesNotTimeTheWaitingInBetween) {
  auto context = ticking_context();
  std::vector<double> seconds;
  int64_t asked = 0;
  bench_steps({.settings = tiny_config(),
               .next_count =
                   [&] {
                     for (int i = 0; i < 1000; ++i) context.seconds();  // the other side's turn
                     return asked++ < 3 ? 1 : 0;
                   },
               .on_steps = [&](const TimedSteps& each) { seconds.push_back(each.seconds); }},
              context);
  ASSERT_EQ(seconds.size(), 3U);
  for (const double each : seconds) EXPECT_LT(each, 100);
}

TEST(StepBench, HasTheSameLossesWithReferenceOps) {
  const auto fast = outcome_of(tiny_config(), {5}).losses();
  const auto reference = outcome_of(tiny_config({"train.plain=true"}), {5}).losses();
  ASSERT_EQ(reference.size(), fast.size());
  for (size_t i = 0; i < fast.size(); ++i) EXPECT_NEAR(reference[i], fast[i], 1e-5 * fast[i]);
}

TEST(StepBench, KnowsWhatTheNetworkCosts) {
  const auto start = outcome_of(tiny_config(), {}).start;
  EXPECT_EQ(start.macs, 3 * 32 * 32 * 8 + 8 * 10);
  EXPECT_EQ(start.parameters, 3 * 32 * 32 * 8 + 8 + 8 * 10 + 10);
  EXPECT_EQ(start.settings.at("train.batch_size"), 4);
  EXPECT_EQ(start.settings.at("model.depth"), 2);
}

TEST(StepBench, WritesWhatAnotherProgramStartsFrom) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "start.safetensors";
  const auto config = tiny_config();
  const auto outcome = outcome_of(config, {1}, file);
  const auto tensors = read_tensors(file);
  const auto settings = RunSettings::from(config);
  const auto model = prepared_model(settings, bench_dataset(settings));
  for (const auto& [name, tensor] : weights_of(*model)) {
    EXPECT_TRUE(tensor.equal(tensors.at("weights/" + name))) << name;
  }
  const auto images = tensors.at("images");
  ASSERT_EQ(images.sizes(), torch::IntArrayRef({kSharedBatches * 4, 3, 32, 32}));
  // The first batch, by the recipe that the header gives, has the loss of the first step.
  const auto first = images.slice(0, 0, 4).to(torch::kFloat32) / 127.5 - 1;
  model->train();
  const auto loss =
      torch::nll_loss(model->forward(first).log_softmax(1), tensors.at("labels").slice(0, 0, 4));
  EXPECT_NEAR(loss.item<double>(), outcome.losses().at(0), 1e-5);
}

TEST(StepBench, TakesNoStepIfNoneIsWanted) {
  EXPECT_TRUE(outcome_of(tiny_config(), {}).portions.empty());
}

TEST(StepBench, RejectsWhatItCannotTime) {
  EXPECT_EQ(error_of([] { outcome_of(tiny_config({"train.batch_size=100000"}), {1}); }),
            "train.batch_size: must be at most 2048 in a bench, got 100000");
  EXPECT_EQ(error_of([] { outcome_of(tiny_config({"data.augment=resized-crop-flip"}), {1}); }),
            "data.augment: resized-crop-flip is for pictures on disk; a bench has none");
  EXPECT_EQ(error_of([] { outcome_of(tiny_config(), {-1}); }),
            "bench: steps must be at least 0, got -1");
}

TEST(PeakGemm, CountsTwoOperationsForEachMultiplyAdd) {
  RunContext context;
  // By this clock every product takes half a second, but for the third: a quarter of one.
  context.seconds = [calls = std::make_shared<int>(0), now = std::make_shared<double>(0)] {
    const bool ends_third = ++*calls == 6;
    return *now += ends_third ? 0.25 : 0.5;
  };
  const auto peak = peak_gemm(Precision::fp32, context);
  EXPECT_DOUBLE_EQ(peak.gflops, 2e-9 * 2048 * 2048 * 2048 / 0.25);
  EXPECT_EQ(peak.precision, "fp32");
}

TEST(PeakGemm, IsThatOfFloat32WhereBfloat16IsImitated) {
  RunContext context;
  context.seconds = [now = std::make_shared<double>(0)] { return ++*now; };
  const auto peak = peak_gemm(Precision::bf16, context);
  EXPECT_EQ(peak.precision, multiplies_bfloat16(torch::kCPU) ? "bf16" : "fp32");
}

TEST(PeakGemm, RejectsAClockThatStandsStill) {
  EXPECT_EQ(error_of([] { peak_gemm(Precision::fp32, {}); }),
            "peak_gemm: needs a clock that goes on, a product took 0 s");
}

}  // namespace kelvin::bench_steps_test
