#include "kelvin/experiment/tasks/recognise.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "kelvin/model/tensors_file.h"
#include "kelvin/model/weights.h"
#include "tests/support/built_model.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin::recognise_test {

class Recognise : public testing::Test {
 protected:
  std::string saved(const NamedTensors& tensors) const {
    const auto path = folder_ / "x.safetensors";
    write_safetensors(path, tensors);
    return path;
  }

  Config recognised(const std::string& path) {
    RunContext context;
    context.inform = [&](const std::string& line) { told_.push_back(line); };
    return recognise({.weights = path}, context);
  }

  TemporaryFolder folder_;
  std::vector<std::string> told_;
};

TEST_F(Recognise, GivesTheSettingsOfTheModelAndSaysWhy) {
  const auto path = saved(weights_of(*built_model("resnet20", {{"width", 0.5}})));
  const auto config = recognised(path);
  EXPECT_EQ(config.at("model.name"), "resnet20");
  EXPECT_EQ(config.at("model.width"), 0.5);
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_TRUE(told_[0].starts_with(path + ": is a resnet20 of 10 classes with model.width=0.5: "))
      << told_[0];
}

TEST_F(Recognise, NamesTheFileThatFitsNothing) {
  const auto path = saved({{"weight", torch::zeros({2, 3})}, {"bias", torch::zeros({2})}});
  EXPECT_TRUE(error_of([&] { recognised(path); }).starts_with(path + ": its 2 tensors fit no "));
}

}  // namespace kelvin::recognise_test
