#include "kelvin/runs/config.h"

#include <gtest/gtest.h>

#include <string>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin::config_test {

constexpr auto kText = R"(seed = 3

[measure.probe]
l2 = 0.1

[train]
lr = 0.5
names = ["a", "b"]
)";

TEST(Config, HoldsSettingsByTheirFullNames) {
  const auto config = Config::parse(kText, "o");
  EXPECT_EQ(
      config.values(),
      (Values{
          {"seed", 3}, {"measure.probe.l2", 0.1}, {"train.lr", 0.5}, {"train.names", {"a", "b"}}}));
  EXPECT_TRUE(config.has("train.lr"));
  EXPECT_FALSE(config.has("train"));
  EXPECT_EQ(config.at("train.lr"), 0.5);
}

TEST(Config, IsWrittenAsTheTextItIsReadFrom) {
  EXPECT_EQ(Config::parse(kText, "o").to_toml(), kText);
}

TEST(Config, WithoutSettingsIsAnEmptyText) {
  EXPECT_EQ(Config().to_toml(), "");
  EXPECT_TRUE(Config::parse("", "o").values().empty());
}

TEST(Config, WithoutTopLevelKeysStartsWithItsFirstSection) {
  EXPECT_EQ(Config({{"a.b", 1}}).to_toml(), "[a]\nb = 1\n");
}

TEST(Config, LoadsAFileAndNamesItInErrors) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "good.toml", kText);
  EXPECT_EQ(Config::load(folder / "good.toml").values(), Config::parse(kText, "o").values());
  write_file_atomically(folder / "bad.toml", "\n\nx = \n");
  const auto message = error_of([&] { Config::load(folder / "bad.toml"); });
  EXPECT_TRUE(message.starts_with((folder / "bad.toml") + ": line 3: ")) << message;
}

TEST(Config, SplitsIntoSections) {
  const auto config = Config::parse(kText, "o");
  auto probe = config.section("measure.probe");
  double l2 = 0;
  probe.read("l2", l2);
  EXPECT_EQ(l2, 0.1);
  EXPECT_EQ(probe.full_name("l2"), "measure.probe.l2");

  auto top = config.section("");
  int64_t seed = 0;
  top.read("seed", seed);
  EXPECT_EQ(seed, 3);
  EXPECT_NO_THROW(top.reject_unknown_keys());

  EXPECT_NO_THROW(config.section("measure").reject_unknown_keys());  // l2 is of measure.probe
  EXPECT_NO_THROW(config.section("absent").reject_unknown_keys());
}

TEST(Config, TakesOverrides) {
  auto config = Config::parse(kText, "o");
  config.apply_override("train.lr=2");
  config.apply_override("model.name=resnet20");
  config.apply_override("train.names=[\"x=y\"]");
  EXPECT_EQ(config.at("train.lr"), 2);
  EXPECT_EQ(config.at("model.name"), "resnet20");
  EXPECT_EQ(config.at("train.names"), Value::array({"x=y"}));
}

TEST(Config, RejectsOverridesThatAssignNothing) {
  Config config;
  EXPECT_EQ(error_of([&] { config.apply_override("train.lr"); }), "'train.lr': must be key=value");
  EXPECT_EQ(error_of([&] { config.apply_override("=3"); }), "'=3': must be key=value");
  EXPECT_EQ(error_of([&] { config.apply_override("train.lr="); }), "train.lr: cannot read ''");
  EXPECT_TRUE(config.values().empty());
}

TEST(Config, MergesSoThatTheOtherWins) {
  Config config({{"a", 1}, {"b", 2}});
  config.merge(Config({{"b", 3}, {"c", 4}}));
  EXPECT_EQ(config.values(), (Values{{"a", 1}, {"b", 3}, {"c", 4}}));
}

TEST(Config, RejectsUnknownSections) {
  const auto config = Config::parse("seed = 1\n[trian]\nlr = 1\n", "o");
  EXPECT_EQ(error_of([&] {
              config.reject_unknown_sections({"data", "train"});
            }),
            "trian.lr: no section 'trian'; did you mean 'train'?");
  EXPECT_EQ(error_of([&] {
              config.reject_unknown_sections({"data", "model"});
            }),
            "trian.lr: no section 'trian'; there are: data, model");
  EXPECT_NO_THROW(config.reject_unknown_sections({"trian"}));
}

TEST(Config, RejectsAskingForWhatIsNotSet) {
  EXPECT_EQ(error_of([] { static_cast<void>(Config().at("train.lr")); }), "train.lr: not set");
}

}  // namespace kelvin::config_test
