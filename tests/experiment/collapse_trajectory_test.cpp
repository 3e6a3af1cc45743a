#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <set>
#include <string>

#include "kelvin/experiment/trajectory.h"
#include "tests/support/command.h"

namespace kelvin {
namespace {

// One look at a network during training shows the training split twice.
TEST(CollapseTrajectory, HasWhatBothPassesAndForeignSamplesTell) {
  Config config;
  for (const char* each :
       {"data.name=glyphs10", "data.train_samples=60", "data.test_samples=30", "model.name=mlp",
        "model.depth=2", "model.width=16", "measure.epoch_samples=40"}) {
    config.apply_override(each);
  }
  auto settings = RunSettings::from(config);
  settings.measure.during = {"neural_collapse"};
  const auto dataset = load_dataset(settings.dataset, settings.request);
  const std::vector<Dataset> foreign = {load_dataset("textures10", settings.request)};
  torch::manual_seed(0);
  const auto model = settings.build_model({});
  const TemporaryFolder temporary;
  const auto folder = RunFolder::create(temporary / "run", {}, nlohmann::ordered_json::object());
  const RunContext context;
  const RunLog log(folder, context, 0);
  Trajectory trajectory(dataset, foreign, settings, log, context);
  trajectory.before_training({.model = *model,
                              .options = settings.train,
                              .total_steps = 10,
                              .steps_per_epoch = 10,
                              .temperature = 1});
  const auto lines = load_lines(folder.path() / "trajectory.jsonl");
  ASSERT_EQ(lines.size(), 1U);
  std::set<std::string> found;  // "name split"
  for (const auto& reading : lines[0].at("readings")) {
    EXPECT_TRUE(std::isfinite(reading.at("value").get<double>())) << reading;
    if (reading.contains("layer")) continue;
    found.insert(reading.at("name").get<std::string>() + " " + reading.value("split", ""));
  }
  for (const auto* wanted :
       {"nc1_trace_pinv train", "nc2_etf_error train", "nc3_self_duality train",
        "nc4_ncc_mismatch train", "nc4_ncc_mismatch test", "orthodev train"}) {
    EXPECT_TRUE(found.contains(wanted)) << wanted;
  }
}

}  // namespace
}  // namespace kelvin
