#include "kelvin/runs/builtin_recipes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kelvin/core/files.h"
#include "kelvin/runs/recipe.h"
#include "kelvin/runs/toml_text.h"

namespace kelvin {
namespace {

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

}  // namespace
}  // namespace kelvin
