#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kelvin/core/text.h"
#include "tests/support/command.h"

namespace kelvin::model_test {

TEST(ModelVerb, ShowsTheLayersOfANetwork) {
  const auto result = run_tool({"model", "show", "resnet20", "-o", "json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto model = nlohmann::json::parse(result.out);
  EXPECT_EQ(model.at("layers").size(), 20U);
  EXPECT_EQ(model.at("parameters"), 269722);
  EXPECT_EQ(model.at("settings").at("shortcut"), "A");
  const auto text = run_tool({"model", "show", "resnet20"});
  EXPECT_NE(text.out.find("layer3.2.conv2"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("20 layers"), std::string::npos) << text.out;
}

TEST(ModelVerb, ShowsOtherShapesAndSettings) {
  const auto result = run_tool({"model", "show", "resnet18", "--input", "3,224,224", "--classes",
                                "1000", "model.width=0.5", "-o", "json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out).at("settings").at("stem"), "imagenet");
}

TEST(ModelVerb, MeasuresNormsOverSeeds) {
  const auto result =
      run_tool({"model", "norms", "mlp,resnet10", "--dataset", "glyphs10", "--seeds", "2",
                "--samples", "16", "-q", "data.train_samples=32", "init.scheme=he", "-o", "json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto models = nlohmann::json::parse(result.out);
  ASSERT_EQ(models.size(), 2U);
  EXPECT_EQ(models[1].at("model"), "resnet10");
  EXPECT_EQ(models[1].at("seeds").size(), 2U);
  EXPECT_GT(models[1].at("seeds")[0].at("initial_logits_norm_per_sample"), 0);
}

TEST(ModelVerb, PrintsMeansWithTheDecimalsOfTheirIntervals) {
  const auto result =
      run_tool({"model", "norms", "mlp", "--dataset", "glyphs10", "--seeds", "2", "--samples", "16",
                "-q", "data.train_samples=32", "model.width=16", "model.depth=2", "-o", "csv"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto row = split(split(result.out, '\n').at(1), ',');
  ASSERT_EQ(row.size(), 9U) << result.out;
  for (size_t i = 4; i < row.size(); ++i) {
    const auto sign = row[i].find(" ± ");
    ASSERT_NE(sign, std::string::npos) << row[i];
    const auto decimals = [](const std::string& number) {
      const auto point = number.find('.');
      return point == std::string::npos ? size_t{0} : number.size() - point - 1;
    };
    EXPECT_EQ(decimals(row[i].substr(0, sign)), decimals(row[i].substr(sign + 4))) << row[i];
  }
}

struct ModelRefusal {
  std::vector<std::string> words;
  std::string message;
};

TEST(ModelVerb, RefusesInOneLine) {
  const std::vector<ModelRefusal> refusals = {
      {{"model"}, "a job is required; there are: norms, show"},
      {{"model", "show", "resnet21"}, "no model named 'resnet21'; did you mean 'resnet20'?"},
      {{"model", "show", "mlp", "--input", "3,32"},
       "--input: must be channels, height and width, got 2 numbers"},
      {{"model", "show", "mlp", "--input", "3,0,32"},
       "--input: sizes must be from 1 to 1024, got 0"},
      {{"model", "show", "mlp", "model.widht=3"},
       "model.widht: no such setting; did you mean 'model.width'?"},
      {{"model", "show", "mlp", "train.lr=3"}, "train.lr: "},
      {{"model", "norms", "mlp", "--seeds", "0"}, "--seeds: must be from 1 to 1000, got 0"},
      {{"model", "norms", "mlp", "--samples", "1"}, "--samples: must be from 2 to 1024, got 1"}};
  for (const auto& refusal : refusals) {
    const auto result = run_tool(refusal.words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find(refusal.message), std::string::npos) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

}  // namespace kelvin::model_test
