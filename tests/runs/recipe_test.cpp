#include "kelvin/runs/recipe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kelvin/core/files.h"
#include "kelvin/formats/toml_text.h"
#include "tests/support/errors.h"

namespace kelvin::recipe_test {

namespace fs = std::filesystem;

// As written, and at each of its scales.
std::vector<Recipe> all_scales(const std::string& name, const std::string& text) {
  std::vector<Recipe> recipes = {parse_recipe(text, name, "")};
  const auto document = parse_toml(text, name);
  if (!document.contains("scale")) return recipes;
  for (const auto& [scale, ignored] : document["scale"].items()) {
    recipes.push_back(parse_recipe(text, name, scale));
  }
  return recipes;
}

bool matches(const PlannedRun& run, const Values& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& each) {
    return run.config.has(each.first) && run.config.at(each.first) == each.second;
  });
}

bool any_matches(const Recipe& recipe, const Values& wanted) {
  return std::any_of(recipe.runs.begin(), recipe.runs.end(),
                     [&](const PlannedRun& run) { return matches(run, wanted); });
}

TEST(BuiltinRecipes, AreTheFilesOfTheRecipesFolder) {
  std::map<std::string, std::string> files;
  for (const auto& file : fs::directory_iterator(fs::path(KELVIN_SOURCE_DIR) / "recipes")) {
    if (file.path().extension() == ".toml") {
      files[file.path().stem().string()] = read_file(file.path());
    }
  }
  EXPECT_EQ(builtin_recipes(), files);
}

TEST(BuiltinRecipes, HaveATitleAndRunsAtEveryScale) {
  for (const auto& [name, text] : builtin_recipes()) {
    for (const auto& recipe : all_scales(name, text)) {
      EXPECT_NE(recipe.title, "") << name;
      EXPECT_FALSE(recipe.runs.empty()) << name;
    }
  }
}

TEST(BuiltinRecipes, GiveEveryRunANameOfItsOwn) {
  for (const auto& [name, text] : builtin_recipes()) {
    for (const auto& recipe : all_scales(name, text)) {
      std::set<std::string> names;
      for (const auto& run : recipe.runs) EXPECT_TRUE(names.insert(run.name).second) << run.name;
    }
  }
}

TEST(BuiltinRecipes, ClaimOnlyWhatTheirRunsCanShow) {
  for (const auto& [name, text] : builtin_recipes()) {
    for (const auto& recipe : all_scales(name, text)) {
      for (const auto& claim : recipe.claims) {
        EXPECT_TRUE(any_matches(recipe, claim.at)) << name << ": " << claim.reading;
        EXPECT_TRUE(any_matches(recipe, claim.against)) << name << ": " << claim.reading;
      }
    }
  }
}

std::vector<std::string> names_of(const Recipe& recipe) {
  std::vector<std::string> names;
  for (const auto& run : recipe.runs) names.push_back(run.name);
  return names;
}

std::string refusal_of(const std::string& toml, const std::string& scale = "") {
  return error_of([&] { parse_recipe(toml, "o", scale); });
}

TEST(Recipe, WithoutSweepIsOneRunOfItsConfig) {
  const auto recipe = parse_recipe("seed = 1\n[train]\nlr = 0.1\n", "o", "");
  ASSERT_EQ(names_of(recipe), (std::vector<std::string>{"run"}));
  EXPECT_EQ(recipe.runs[0].config.values(), (Values{{"seed", 1}, {"train.lr", 0.1}}));
  EXPECT_TRUE(recipe.claims.empty());
}

TEST(Recipe, TakesItsTitleFromTheFirstComment) {
  EXPECT_EQ(parse_recipe("#   Table 1\n# more\nseed = 1\n", "o", "").title, "Table 1");
  EXPECT_EQ(parse_recipe("# Only a title", "o", "").title, "Only a title");
  EXPECT_EQ(parse_recipe("#\nseed = 1\n", "o", "").title, "");
  EXPECT_EQ(parse_recipe("seed = 1\n# later\n", "o", "").title, "");
}

TEST(Recipe, ExpandsASweepToTheGrid) {
  const auto recipe =
      parse_recipe("[sweep]\nseed = [0, 1]\ntrain.temperature = [1, 10.5]\n", "o", "");
  EXPECT_EQ(names_of(recipe),
            (std::vector<std::string>{"seed=0,temperature=1", "seed=0,temperature=10.5",
                                      "seed=1,temperature=1", "seed=1,temperature=10.5"}));
  EXPECT_EQ(recipe.runs[3].config.values(), (Values{{"seed", 1}, {"train.temperature", 10.5}}));
}

TEST(Recipe, MultipliesCasesAndGrid) {
  const auto recipe = parse_recipe(R"(
train.lr = 0.1
[[case]]
name = "small"
model.width = 8
[[case]]
name = "large"
model.width = 64
train.lr = 0.5
[sweep]
model.name = ["mlp", "resnet20"]
)",
                                   "o", "");
  EXPECT_EQ(names_of(recipe), (std::vector<std::string>{"small,name=mlp", "small,name=resnet20",
                                                        "large,name=mlp", "large,name=resnet20"}));
  EXPECT_EQ(recipe.runs[0].config.values(),
            (Values{{"train.lr", 0.1}, {"model.width", 8}, {"model.name", "mlp"}}));
  EXPECT_EQ(recipe.runs[3].config.values(),
            (Values{{"train.lr", 0.5}, {"model.width", 64}, {"model.name", "resnet20"}}));
}

constexpr auto kScaled = R"(
train.epochs = 100
[sweep]
seed = [0, 1, 2]
[scale.smoke]
train.epochs = 1
sweep.seed = [0]
[scale.paper]
train.epochs = 200
)";

TEST(Recipe, IsOverriddenByTheChosenScaleAlone) {
  const auto smoke = parse_recipe(kScaled, "o", "smoke");
  ASSERT_EQ(smoke.runs.size(), 1U);
  EXPECT_EQ(smoke.runs[0].config.values(), (Values{{"seed", 0}, {"train.epochs", 1}}));
  const auto paper = parse_recipe(kScaled, "o", "paper");
  ASSERT_EQ(paper.runs.size(), 3U);
  EXPECT_EQ(paper.runs[2].config.values(), (Values{{"seed", 2}, {"train.epochs", 200}}));
}

TEST(Recipe, WithoutAScaleIsAsWritten) {
  const auto recipe = parse_recipe(kScaled, "o", "");
  ASSERT_EQ(recipe.runs.size(), 3U);
  EXPECT_EQ(recipe.runs[0].config.values(), (Values{{"seed", 0}, {"train.epochs", 100}}));
}

TEST(Recipe, HoldsClaims) {
  const auto recipe = parse_recipe(R"(
[[claim]]
reading = "solution_rank"
direction = "lower"
at = { train.temperature = 100 }
against = { train.temperature = 1, model.name = "mlp" }
)",
                                   "o", "");
  ASSERT_EQ(recipe.claims.size(), 1U);
  EXPECT_EQ(recipe.claims[0].reading, "solution_rank");
  EXPECT_EQ(recipe.claims[0].direction, "lower");
  EXPECT_EQ(recipe.claims[0].at, (Values{{"train.temperature", 100}}));
  EXPECT_EQ(recipe.claims[0].against, (Values{{"train.temperature", 1}, {"model.name", "mlp"}}));
}

TEST(Recipe, RejectsAScaleItDoesNotHave) {
  EXPECT_EQ(refusal_of(kScaled, "laptop"), "o: no scale 'laptop'; there are: paper, smoke");
  EXPECT_EQ(refusal_of("seed = 1", "laptop"), "o: no scale 'laptop'; there are: none");
  EXPECT_EQ(refusal_of("[scale]\nsmoke = 3", "smoke"), "o: scale.smoke: must be a table, got 3");
}

TEST(Recipe, RejectsCasesWithoutAName) {
  EXPECT_EQ(refusal_of("[[case]]\nmodel.width = 8\n"), "o: [[case]] needs a name");
  EXPECT_EQ(refusal_of("[[case]]\nname = 8\n"), "o: [[case]] needs a name");
  EXPECT_EQ(refusal_of("case = 8\n"), "o: [[case]] needs a name");
}

TEST(Recipe, RejectsSweepsOverAnythingButLists) {
  EXPECT_EQ(refusal_of("[sweep]\nseed = 3\n"), "o: sweep.seed: must be a list of values, got 3");
  EXPECT_EQ(refusal_of("[sweep]\nseed = []\n"), "o: sweep.seed: must be a list of values, got []");
}

TEST(Recipe, LetsAClaimSayWhichReadingItIsAbout) {
  const auto claim = [](const std::string& line) {
    return "[[claim]]\nreading = \"x\"\ndirection = \"lower\"\nat = { a = 1 }\nagainst = { a = 2 "
           "}\n" +
           line + "\n";
  };
  const auto recipe =
      parse_recipe(claim("layer = \"fc\"\nood = \"svhn\"\ngamma = 0.01\nbias = false\n"), "o", "");
  EXPECT_EQ(recipe.claims.at(0).of,
            (Values{{"layer", "fc"}, {"ood", "svhn"}, {"gamma", 0.01}, {"bias", false}}));
  EXPECT_TRUE(parse_recipe(claim(""), "o", "").claims.at(0).of.empty());
  EXPECT_EQ(refusal_of(claim("gama = 0.01")),
            "o: claim.gama: no such key; there are: against, at, direction, reading, and of the "
            "reading layer, split, detector, ood, gamma, shift_free, bias");
  EXPECT_EQ(refusal_of(claim("gamma = \"0.01\"")),
            "o: claim.gamma: must be a number, got \"0.01\"");
  EXPECT_EQ(refusal_of(claim("layer = 3")), "o: claim.layer: must be a text, got 3");
  EXPECT_EQ(refusal_of(claim("bias = 1")), "o: claim.bias: must be a boolean, got 1");
}

TEST(Recipe, RejectsIncompleteClaims) {
  const std::vector<std::string> lines = {"reading = \"x\"\n", "direction = \"lower\"\n",
                                          "at = { a = 1 }\n", "against = { a = 2 }\n"};
  const std::vector<std::string> keys = {"reading", "direction", "at", "against"};
  for (size_t missing = 0; missing < lines.size(); ++missing) {
    std::string toml = "[[claim]]\n";
    for (size_t i = 0; i < lines.size(); ++i) toml += i == missing ? "" : lines[i];
    EXPECT_EQ(refusal_of(toml), "o: [[claim]] needs '" + keys[missing] + "'");
  }
}

TEST(Recipe, RejectsClaimsOfTheWrongKind) {
  const auto claim = [](const std::string& reading, const std::string& direction,
                        const std::string& at) {
    return "[[claim]]\nreading = " + reading + "\ndirection = " + direction + "\nat = " + at +
           "\nagainst = { a = 1 }\n";
  };
  EXPECT_EQ(refusal_of(claim("3", "'lower'", "{ a = 2 }")),
            "o: claim.reading: must be a text, got 3");
  EXPECT_EQ(refusal_of(claim("'x'", "true", "{ a = 2 }")),
            "o: claim.direction: must be a text, got true");
  EXPECT_EQ(refusal_of(claim("'x'", "'lower'", "2")), "o: claim.at: must be a table, got 2");
  EXPECT_EQ(refusal_of(claim("'x'", "'sideways'", "{ a = 2 }")),
            "o: claim.direction: must be \"lower\" or \"higher\", got \"sideways\"");
}

TEST(Recipe, NamesOriginAndLineOfASyntaxError) {
  EXPECT_TRUE(refusal_of("# title\nseed = = 1\n").starts_with("o: line 2: "));
}

constexpr auto kCases = R"(
train.lr = 0.1
[[case]]
name = "a"
sweep.train.temperature = [1, 10]
[[case]]
name = "b"
[sweep]
seed = [1]
[scale.smoke]
train.lr = 0.2
[[scale.smoke.case]]
name = "b"
train.lr = 0.3
sweep.seed = [4, 5]
)";

TEST(Recipe, LetsACaseHaveListsOfItsOwn) {
  const auto recipe = parse_recipe(kCases, "o", "");
  EXPECT_EQ(names_of(recipe), (std::vector<std::string>{"a,seed=1,temperature=1",
                                                        "a,seed=1,temperature=10", "b,seed=1"}));
  EXPECT_EQ(recipe.runs[0].case_name, "a");
  EXPECT_EQ(recipe.scales, (std::vector<std::string>{"smoke"}));
}

TEST(Recipe, LetsAScaleChangeOneCase) {
  const auto recipe = parse_recipe(kCases, "o", "smoke");
  EXPECT_EQ(names_of(recipe),
            (std::vector<std::string>{"a,seed=1,temperature=1", "a,seed=1,temperature=10",
                                      "b,seed=4", "b,seed=5"}));
  EXPECT_EQ(recipe.runs[0].config.at("train.lr"), 0.2);
  EXPECT_EQ(recipe.runs[3].config.at("train.lr"), 0.3);
  EXPECT_EQ(refusal_of("[[case]]\nname = \"a\"\n[[scale.x.case]]\nname = \"c\"\n", "x"),
            "o: a scale changes the case 'c', which there is not");
}

TEST(Recipe, IsOverriddenLast) {
  Config overrides;
  overrides.apply_override("train.lr=7");
  overrides.apply_override("sweep.seed=[8]");
  const auto recipe = parse_recipe(kCases, "o", "smoke", overrides);
  EXPECT_EQ(names_of(recipe), (std::vector<std::string>{"a,seed=8,temperature=1",
                                                        "a,seed=8,temperature=10", "b,seed=8"}));
  for (const auto& run : recipe.runs) EXPECT_EQ(run.config.at("train.lr"), 7);
  Config swept;
  swept.apply_override("seed=3");
  EXPECT_EQ(error_of([&] { parse_recipe(kCases, "o", "", swept); }),
            "o: seed: is swept over; change its list: sweep.seed=[...]");
}

constexpr auto kTuned = R"(
train.lr = 0.1
[[case]]
name = "strict"
[[case]]
name = "tuned"
tune.train.lr = [0.5, 0.1]
tune.samples = 10
tune.seed = 100
[sweep]
seed = [1, 2]
train.temperature = [1, 10]
)";

TEST(TunedCase, HasATrialForEachValueAtEachPlaceOfItsLists) {
  const auto recipe = parse_recipe(kTuned, "o", "");
  // Which value its runs have is not known yet.
  EXPECT_EQ(names_of(recipe), (std::vector<std::string>{
                                  "strict,seed=1,temperature=1", "strict,seed=1,temperature=10",
                                  "strict,seed=2,temperature=1", "strict,seed=2,temperature=10"}));
  ASSERT_EQ(recipe.tunings.size(), 2U);
  const auto& [name, key, trials] = recipe.tunings[1];
  EXPECT_EQ(name, "tuned,temperature=10");
  EXPECT_EQ(key, "train.lr");
  ASSERT_EQ(trials.size(), 2U);
  EXPECT_EQ(trials[0].name, "tuned,seed=100,temperature=10,lr=0.1");
  EXPECT_EQ(trials[1].name, "tuned,seed=100,temperature=10,lr=0.5");
  EXPECT_EQ(trials[1].config.at("seed"), 100);
  EXPECT_EQ(trials[1].config.at("train.lr"), 0.5);
  EXPECT_EQ(trials[1].config.at("train.temperature"), 10);
  EXPECT_EQ(trials[1].config.at("data.validation_samples"), 10);
}

TEST(TunedCase, GivesAllSeedsTheValueThatIsChosenAtTheirPlace) {
  const auto chosen = [](const Tuning& tuning) -> std::optional<Value> {
    if (tuning.name == "tuned,temperature=1") return std::nullopt;
    return std::make_optional(tuning.trials.back().config.at(tuning.key));
  };
  const auto recipe = parse_recipe(kTuned, "o", "", {}, chosen);
  ASSERT_EQ(recipe.runs.size(), 6U);
  EXPECT_EQ(recipe.runs[0].tuning, "");
  EXPECT_EQ(recipe.runs[4].name, "tuned,seed=1,temperature=10,lr=0.5");
  EXPECT_EQ(recipe.runs[5].name, "tuned,seed=2,temperature=10,lr=0.5");
  EXPECT_EQ(recipe.runs[5].tuning, "tuned,temperature=10");
  EXPECT_EQ(recipe.runs[5].case_name, "tuned");
  // The runs of the table are those of any other case: trained and tested on whole splits.
  EXPECT_EQ(recipe.runs[5].config.values(),
            (Values{{"seed", 2}, {"train.lr", 0.5}, {"train.temperature", 10}}));
  EXPECT_EQ(parse_recipe(kTuned, "o", "", {}, first_of_grid).runs.back().config.at("train.lr"),
            0.1);
}

TEST(TunedCase, RejectsSeedsOfTheTableAndKeysThatAreSetOtherwise) {
  const auto with = [](const std::string& line) {
    Config overrides;
    overrides.apply_override(line);
    return error_of([&] { parse_recipe(kTuned, "o", "", overrides); });
  };
  EXPECT_EQ(
      with("sweep.seed=[1, 100]"),
      "o: case 'tuned': tune.seed: must not be among the seeds of the table, [1,100], got 100");
  EXPECT_EQ(with("sweep.train.lr=[1, 2]"),
            "o: case 'tuned': train.lr: is both swept over and tuned; it can be one of them");
  EXPECT_EQ(with("train.lr=1"), "o: train.lr: is tuned; change its grid: tune.train.lr=[...]");
  EXPECT_EQ(refusal_of("seed = 7\ntune.seed = 7\ntune.samples = 1\ntune.train.lr = [1, 2]\n"),
            "o: tune.seed: must not be among the seeds of the table, [7], got 7");
}

TEST(BuiltinRecipes, TuneOnSeedsOfNoTable) {
  bool is_tuned = false;
  for (const auto& [name, text] : builtin_recipes()) {
    for (const auto& recipe : all_scales(name, text)) {
      for (const auto& tuning : recipe.tunings) {
        is_tuned = true;
        for (const auto& trial : tuning.trials) {
          EXPECT_GE(trial.config.at("seed").get<int64_t>(), 100) << name << ": " << trial.name;
        }
      }
    }
  }
  EXPECT_TRUE(is_tuned);
}

}  // namespace kelvin::recipe_test
