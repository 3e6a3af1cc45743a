#include "kelvin/experiment/compute_api.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kelvin/data/dataset.h"
#include "kelvin/experiment/run/run.h"
#include "kelvin/experiment/tasks/plan.h"
#include "kelvin/formats/npz_file.h"
#include "kelvin/runs/run_folder.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/requests.h"

namespace kelvin::compute_api_test {

ComputeLibrary library() { return ComputeLibrary(kelvin_run_task); }

Config resolve(const Config& config) { return library().run(ResolveRequest{.config = config}); }

Config config_of(const std::vector<std::string>& overrides) {
  Config config;
  for (const auto& each : overrides) config.apply_override(each);
  return config;
}

const std::vector<std::string> kTiny = {"data.name=glyphs10",   "data.train_samples=32",
                                        "data.test_samples=16", "model.name=mlp",
                                        "model.width=5",        "model.depth=2",
                                        "train.epochs=1",       "measure.names=[\"accuracy\"]"};

TEST(ComputeApi, HasATaskForEverythingTheToolAsksFor) {
  const auto names = tasks().names();
  for (const auto* name : {"bench_steps", "calibrate", "describe_model", "detect", "initial_norms",
                           "measure", "peak_gemm", "plan", "resolve", "resume", "sample_images",
                           "threads", "train", "truncate", "versions"}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  }
}

TEST(ComputeApi, ResolvesAConfigUntilNothingIsUnset) {
  const auto resolved = resolve(config_of(kTiny));
  EXPECT_EQ(resolved.at("train.batch_size"), 128);
  EXPECT_EQ(resolved.at("model.width"), 5);
  EXPECT_EQ(resolve(resolved).values(), resolved.values());
}

TEST(ComputeApi, RefusesAConfigItDoesNotUnderstand) {
  EXPECT_EQ(error_of([] { resolve(config_of({"train.epoch=3"})); }),
            "train.epoch: no such setting; did you mean 'train.epochs'?");
}

TEST(ComputeApi, PlansWhatAModelCosts) {
  auto overrides = kTiny;
  overrides.push_back("train.temperature=4");
  const auto plan = library().run(PlanRequest{.resolved = resolve(config_of(overrides))});
  EXPECT_EQ(plan.at("parameters"), (3072 + 1) * 5 + (5 + 1) * 10);
  EXPECT_EQ(plan.at("weight_layers"), 2);
  EXPECT_EQ(plan.at("macs_per_image"), 3072 * 5 + 5 * 10);
  // Two operations per multiply-add, three times as much as the forward pass alone.
  EXPECT_DOUBLE_EQ(plan.at("training_gflop_per_1000_images"), 6 * 15410 * 1000 / 1e9);
  const double norm = plan.at("initial_logits_norm_per_sample");
  EXPECT_GT(norm, 0);
  EXPECT_DOUBLE_EQ(plan.at("initial_logits_norm_per_sample_over_t"), norm / 4);
}

Dataset larger_than_memory(const DatasetRequest&) {
  Dataset dataset;
  dataset.train.pixels = torch::empty({int64_t{1} << 50}, torch::kUInt8);
  return dataset;
}

const bool kRegistered =
    datasets().add("larger_than_memory",
                   {.summary = "", .reference = "", .classes = 10, .load = larger_than_memory});

TEST(ComputeApi, SaysInOneLineThatMemoryDoesNotSuffice) {
  const auto resolved = resolve(config_of({"data.name=larger_than_memory"}));
  const auto message = error_of([&] { library().run(PlanRequest{.resolved = resolved}); });
  EXPECT_TRUE(message.starts_with("not enough memory: ")) << message;
  EXPECT_EQ(message.find("frame #"), std::string::npos) << message;
}

TEST(ComputeApi, TrainsAndMeasuresARun) {
  TemporaryFolder folder;
  library().run(TrainRequest{.resolved = resolve(config_of(kTiny)),
                             .output = folder / "run",
                             .metadata = nlohmann::ordered_json::object()});
  const auto run = load_run(folder / "run");
  EXPECT_EQ(run.status, RunStatus::finished);
  auto request = request_for({"accuracy"});
  request.run = folder / "run";
  const auto again = library().run(request);
  ASSERT_EQ(again.size(), 4U);
  EXPECT_EQ(load_run(folder / "run").readings.size(), run.readings.size());
}

TEST(ComputeApi, MeasuresADump) {
  TemporaryFolder folder;
  const std::string logits(4 * sizeof(float), '\0');
  const std::string labels(2 * sizeof(int64_t), '\0');
  write_npz(folder / "dump.npz", {{"logits", {.dtype = "f4", .shape = {2, 2}, .bytes = logits}},
                                  {"labels", {.dtype = "i8", .shape = {2}, .bytes = labels}}});
  auto request = request_for({"logits_norm"});
  request.dump = folder / "dump.npz";
  const auto readings = library().run(request);
  ASSERT_EQ(readings.size(), 3U);
  EXPECT_EQ(readings[0].value, 0);
}

TEST(ComputeApi, KnowsTheVersionsItComputesWith) {
  const auto versions = library().run(VersionsRequest{});
  EXPECT_EQ(versions.at("torch"), TORCH_VERSION);
  EXPECT_NE(versions.at("cpu_capability"), "unknown");
  EXPECT_FALSE(versions.at("blas").get<std::string>().empty());
  const auto path = versions.at("blas_library").get<std::string>();
  const auto kernels = versions.at("blas_kernels").get<std::string>();
  EXPECT_EQ(kernels.empty(), path.find("openblas") == std::string::npos) << path;
}

TEST(ComputeApi, SetsTheThreads) {
  const int threads = at::get_num_threads();
  library().run(ThreadsRequest{.threads = 1});
  EXPECT_EQ(at::get_num_threads(), 1);
  EXPECT_EQ(library().run(VersionsRequest{}).at("threads"), 1);
  library().run(ThreadsRequest{.threads = 2});
  EXPECT_EQ(library().run(VersionsRequest{}).at("threads"), 2);
  library().run(ThreadsRequest{.threads = threads});
}

TEST(RunContext, TellsOfMemoryFromATenthOfTheLimitOn) {
  std::vector<std::string> said;
  RunContext context;
  context.inform = [&](const std::string& text) { said.push_back(text); };
  constexpr int64_t kLimit = 1000 << 10;
  context.inform_of_memory("measures hold", 0, kLimit);
  context.inform_of_memory("measures hold", kLimit / 10 - 1, kLimit);
  EXPECT_TRUE(said.empty());
  context.inform_of_memory("measures hold", kLimit / 10, kLimit);
  EXPECT_EQ(said,
            std::vector<std::string>{"measures hold at most 100 KiB of the 1000 KiB allowed"});
}

}  // namespace kelvin::compute_api_test
