#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "kelvin/experiment/evaluate/extract.h"
#include "kelvin/experiment/run/trajectory.h"
#include "tests/support/command.h"

namespace kelvin::collapse_trajectory_test {

// What a network is at the beginning of training, as the first line of its trajectory has it.
struct FirstLook {
  explicit FirstLook(const std::vector<std::string>& overrides) {
    Config config;
    config.apply_override("data.name=glyphs10");
    config.apply_override("measure.epoch_samples=40");
    for (const auto& each : overrides) config.apply_override(each);
    auto settings = RunSettings::from(config);
    settings.measure.during = {"neural_collapse"};
    dataset = load_dataset(settings.dataset, settings.request);
    ood = {load_dataset("textures10", settings.request)};
    torch::manual_seed(0);
    model = settings.build_model({});
    const TemporaryFolder temporary;
    const auto folder = RunFolder::create(temporary / "run", {}, nlohmann::ordered_json::object());
    const RunContext context;
    const RunLog log(folder, context, 0);
    Trajectory trajectory(dataset, ood, settings, log, context);
    trajectory.before_training({.model = *model,
                                .options = settings.train,
                                .total_steps = 10,
                                .steps_per_epoch = 10,
                                .temperature = 1});
    lines = load_lines(folder.path() / "trajectory.jsonl");
  }

  Dataset dataset;
  std::vector<Dataset> ood;
  std::shared_ptr<Model> model;
  std::vector<nlohmann::ordered_json> lines;
};

// One look at a network during training shows the training split twice.
TEST(CollapseTrajectory, HasWhatBothPassesAndOodSamplesTell) {
  const FirstLook look({"data.train_samples=60", "data.test_samples=30", "model.name=mlp",
                        "model.depth=2", "model.width=16"});
  ASSERT_EQ(look.lines.size(), 1U);
  std::set<std::string> found;  // "name split"
  for (const auto& reading : look.lines[0].at("readings")) {
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

// Class means of own samples and the mean of OOD ones must come from one kind of statistics.
TEST(CollapseTrajectory, LooksAtOodSamplesOfAFreshNetworkAsAtItsOwn) {
  const FirstLook look({"data.train_samples=40", "data.test_samples=30", "model.name=resnet10",
                        "model.width=0.125", "model.stem_stride=2"});
  const auto orthodev = [&](bool ood_in_batches) {
    Record own;
    Record other;
    extract(*look.model, look.dataset, look.dataset,
            {.split = Split::train, .batch_statistics = true},
            [&](const Record& record) { own = record; });
    extract(*look.model, look.ood[0], look.dataset,
            {.is_ood = true, .batch_statistics = ood_in_batches},
            [&](const Record& record) { other = record; });
    const auto mean = other.features.to(torch::kFloat64).mean(0);
    double sum = 0;
    int64_t classes = 0;
    for (int64_t label = 0; label < own.classes; ++label) {
      const auto places = (own.labels == label).nonzero().squeeze(1);
      if (places.numel() == 0) continue;
      const auto centre = own.features.index_select(0, places).to(torch::kFloat64).mean(0);
      sum += (centre.dot(mean) / (centre.norm() * mean.norm())).abs().item<double>();
      ++classes;
    }
    return sum / static_cast<double>(classes);
  };
  double found = 0;
  for (const auto& reading : look.lines.at(0).at("readings")) {
    if (reading.at("name") == "orthodev") found = reading.at("value");
  }
  EXPECT_NEAR(found, orthodev(true), 1e-5);
  EXPECT_GT(std::abs(orthodev(true) - orthodev(false)), 1e-3);
}

}  // namespace kelvin::collapse_trajectory_test
