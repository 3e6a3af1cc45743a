#include "kelvin/report/tables/run_values.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/report/report_runs.h"

namespace kelvin::run_values_test {

TEST(DefinitionText, ListsKeysAndLeavesOutWhatIsToldElsewhere) {
  EXPECT_EQ(definition_text({{"gamma", 0.001}, {"matrix", "logits"}}, {"matrix"}), "gamma 0.001");
  EXPECT_EQ(definition_text({{"bias", true}, {"gamma", 0.001}}), "bias true, gamma 0.001");
  EXPECT_EQ(definition_text(Definition::object()), "");
}

std::vector<std::string> names_of(const std::vector<PlaceColumn>& places) {
  std::vector<std::string> names;
  for (const auto& place : places) names.emplace_back(place.name);
  return names;
}

TEST(ReadingPlaces, AreThoseThatSomeReadingHas) {
  const Readings readings = {{.name = "auroc", .split = "test", .ood = "svhn"},
                             {.name = "singular_value", .split = "test", .index = 0}};
  EXPECT_EQ(names_of(used_places(readings)), (std::vector<std::string>{"split", "ood", "index"}));
  EXPECT_TRUE(used_places({}).empty());
}

TEST(ReadingPlaces, ShowWhatTheReadingSays) {
  const Reading reading{
      .name = "x", .layer = "a", .split = "b", .detector = "c", .ood = "d", .index = 7};
  std::string text;
  for (const auto& place : all_places()) text += place.cell(reading);
  EXPECT_EQ(text, "abcd7");
}

TEST(Observation, OfTheSolutionRankTakesItsDefaultDefinition) {
  auto run = bare_run(1, 0);
  run.readings = {rank_reading(50, 1e-3, false), rank_reading(49), rank_reading(40, 1e-2)};
  auto curve = rank_reading(48);
  curve.definition["curve"] = true;
  auto without_bias = rank_reading(47);
  without_bias.definition["bias"] = false;
  run.readings.insert(run.readings.begin(), {curve, without_bias});
  EXPECT_EQ(observation(run, {.name = "solution_rank"})->value, 49);
}

TEST(Observation, IsAtTheWidthBoundOnlyIfTheWidthSetsTheBoundItReaches) {
  auto run = run_with_rank(1, 0, 16);
  auto& definition = run.readings[0].definition;
  definition["upper_bound"] = 16;
  definition["bound_by_width"] = true;
  EXPECT_TRUE(observation(run, {.name = "solution_rank"})->at_width_bound);
  definition["bound_by_width"] = false;
  EXPECT_FALSE(observation(run, {.name = "solution_rank"})->at_width_bound);
  definition["bound_by_width"] = true;
  run.readings[0].value = 15;
  EXPECT_FALSE(observation(run, {.name = "solution_rank"})->at_width_bound);
}

TEST(Observation, TellsSplitsDetectorsAndOodSetsApart) {
  auto run = bare_run(1, 0);
  run.readings = {{.name = "accuracy", .value = 0.9, .split = "train"},
                  {.name = "accuracy", .value = 0.8, .split = "test"},
                  {.name = "auroc", .value = 0.7, .detector = "msp", .ood = "svhn"}};
  EXPECT_EQ(observation(run, {.name = "accuracy", .split = "test"})->value, 0.8);
  EXPECT_EQ(observation(run, {.name = "auroc", .ood = "svhn", .detector = "msp"})->value, 0.7);
  EXPECT_FALSE(observation(run, {.name = "auroc", .ood = "svhn", .detector = "neco"}));
}

TEST(Observation, OfANonFiniteReadingIsNone) {
  EXPECT_FALSE(observation(run_with_rank(1, 0, NAN), {.name = "solution_rank"}));
}

TEST(Quantities, AreThoseThatAnyRunHas) {
  auto run = run_with_rank(1, 0, 3);
  run.readings.push_back({.name = "rho", .value = 0.3, .ood = "svhn"});
  run.readings.push_back({.name = "rho", .value = 0.2, .ood = "cifar10"});
  const auto quantities = quantities_of({bare_run(1, 1), run});
  ASSERT_EQ(quantities.size(), 3);
  EXPECT_EQ(label_of(quantities[0]), "solution rank (SR)");
  EXPECT_EQ(label_of(quantities[1]), "OOD generalisation loss ρ (cifar10)");
}

// Else a report would have the same number twice, and a claim count it twice.
TEST(Quantities, LeaveOutGroupsThatRepeatTheirOnlyMember) {
  auto run = bare_run(1, 0);
  const auto add = [&](const std::string& ood, const std::vector<std::string>& members) {
    run.readings.push_back({.name = "auroc", .value = 0.5, .detector = "msp", .ood = ood});
    if (!members.empty()) run.readings.back().definition["mean_over"] = members;
  };
  add("cifar100", {});
  add("near", {"cifar100"});
  add("far", {"mnist", "svhn"});
  std::vector<std::string> oods;
  for (const auto& quantity : quantities_of({run})) oods.push_back(quantity.ood);
  EXPECT_EQ(oods, (std::vector<std::string>{"cifar100", "far"}));
}

TEST(Metric, OfWhatIsNoNumberIsNan) {
  const nlohmann::ordered_json line = {{"loss", nullptr}, {"epoch", "one"}, {"step", 3}};
  EXPECT_TRUE(std::isnan(metric(line, "loss")));
  EXPECT_TRUE(std::isnan(metric(line, "epoch")));
  EXPECT_TRUE(std::isnan(metric(line, "absent")));
  EXPECT_TRUE(std::isnan(metric(nlohmann::ordered_json::array(), "step")));
  EXPECT_EQ(metric(line, "step"), 3);
}

TEST(ComparedViews, AreToldByTheMetrics) {
  auto run = bare_run(1, 0);
  EXPECT_FALSE(compares_views({run}));
  add_metrics(run, {{0.5, 10}});
  EXPECT_FALSE(compares_views({run}));
  auto other = bare_run(1, 1);
  other.metrics.push_back({{"step", 0}, {"train_view_accuracy", 0.1}});
  EXPECT_TRUE(compares_views({run, other}));
}

TEST(Settings, OfARunAreFoundUnderTheirLastName) {
  kelvin::Run run;
  EXPECT_EQ(seed_of(run), 0);
  EXPECT_TRUE(std::isnan(temperature_of(run)));
  run.config.set("softmax.temperature", 7);
  run.config.set("train.seed", 4);
  EXPECT_EQ(seed_of(run), 4);
  EXPECT_EQ(temperature_of(run), 7);
}

TEST(ShortKey, NamesTheSectionIfTheKeyIsItsName) {
  EXPECT_EQ(short_key("train.lr"), "lr");
  EXPECT_EQ(short_key("model.name"), "model");
  EXPECT_EQ(short_key("seed"), "seed");
}

TEST(ValueText, HasNoQuotes) {
  EXPECT_EQ(value_text(Value("mlp")), "mlp");
  EXPECT_EQ(value_text(Value(0.1)), "0.1");
  EXPECT_EQ(value_text(Value({1, 2})), "[1, 2]");
  EXPECT_EQ(value_text(Value(true)), "true");
}

}  // namespace kelvin::run_values_test
