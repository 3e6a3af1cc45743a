#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/python.h"

namespace kelvin::network_input_test {

using Words = std::vector<std::string>;

// A convolution and a linear layer for glyphs10: traced, and its weights as torch.save has them.
void write_networks(const TemporaryFolder& folder) {
  python_output(
      "import sys, torch\n"
      "torch.manual_seed(0)\n"
      "net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, 2), torch.nn.ReLU(),\n"
      "                          torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(),\n"
      "                          torch.nn.Linear(32, 10)).eval()\n"
      "torch.jit.trace(net, torch.zeros(1, 3, 32, 32)).save(sys.argv[1])\n"
      "torch.save(net.state_dict(), sys.argv[2])\n",
      {folder / "net.pt", folder / "weights.pt"});
}

CommandResult measure(const std::string& file, const Words& words) {
  Words command = {"measure",
                   file,
                   "--dataset",
                   "glyphs10",
                   "--measures",
                   "solution_rank,layer_spectrum",
                   "--train-samples",
                   "20",
                   "--test-samples",
                   "100",
                   "-o",
                   "json"};
  command.insert(command.end(), words.begin(), words.end());
  return run_tool(command);
}

TEST(NetworkInput, RunsTheCodeOfATorchscriptFileOnlyIfItIsTrusted) {
  const TemporaryFolder folder;
  write_networks(folder);
  const auto refused = measure(folder / "net.pt", {});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.err, "kelvin measure: " + (folder / "net.pt") +
                             ": a TorchScript file holds code, which is run; --trust says that it "
                             "may be\n");
  const auto trusted = measure(folder / "net.pt", {"--trust"});
  ASSERT_EQ(trusted.exit_code, 0) << trusted.err;
  std::set<std::string> layers;
  const auto json = nlohmann::json::parse(trusted.out);
  for (const auto& reading : json.at("readings")) {
    if (reading.contains("layer")) layers.insert(reading.at("layer"));
  }
  EXPECT_EQ(layers, (std::set<std::string>{"0", "4"}));
}

TEST(NetworkInput, TakesNoOtherModelForATorchscriptFile) {
  const TemporaryFolder folder;
  write_networks(folder);
  const auto result = measure(folder / "net.pt", {"--trust", "--model", "mlp"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "kelvin measure: model.name: is for a file of weights; " +
                            (folder / "net.pt") + " has its own code\n");
}

TEST(NetworkInput, RunsNoCodeThatOnlyASettingNames) {
  const TemporaryFolder folder;
  write_networks(folder);
  const Words settings = {"--model", "torchscript", "model.file=" + (folder / "net.pt")};
  const auto of_weights = measure(folder / "weights.pt", settings);
  EXPECT_EQ(of_weights.exit_code, 2);
  EXPECT_EQ(of_weights.err,
            "kelvin measure: model.name: torchscript is for a file of torch.jit.save; " +
                (folder / "weights.pt") + " is none\n");
  const auto cut = measure(folder / "weights.pt", {"--model", "truncated", "model.of=torchscript",
                                                   "model.file=" + (folder / "net.pt")});
  EXPECT_EQ(cut.exit_code, 2);
  EXPECT_EQ(cut.err, "kelvin measure: model.of: must be an architecture, got torchscript\n");
  Words train = {"train", "--dataset", "glyphs10", "--output", folder / "run"};
  train.insert(train.end(), settings.begin(), settings.end());
  const auto trained = run_tool(train);
  EXPECT_EQ(trained.exit_code, 2);
  EXPECT_NE(trained.err.find("model.name: torchscript can be measured, but neither trained nor be "
                             "that of a run"),
            std::string::npos)
      << trained.err;
}

TEST(NetworkInput, RefusesWhatNeedsGradientsOfATorchscriptFile) {
  const TemporaryFolder folder;
  write_networks(folder);
  const auto ranks = measure(folder / "net.pt", {"--trust", "measure.names=[\"gradient_rank\"]"});
  EXPECT_EQ(ranks.exit_code, 2);
  EXPECT_NE(ranks.err.find("gradients: the weights of a network with its own code are constants"),
            std::string::npos)
      << ranks.err;
  const auto cut = run_tool({"truncate", folder / "net.pt", "--trust", "--dataset", "glyphs10",
                             "--layer", "0", "--output", folder / "cut.safetensors"});
  EXPECT_EQ(cut.exit_code, 2);
  EXPECT_NE(cut.err.find("truncate: a network with its own code cannot be cut"), std::string::npos)
      << cut.err;
}

TEST(NetworkInput, SaysWhatToDoAboutWeightsThatFitNoArchitecture) {
  const TemporaryFolder folder;
  write_networks(folder);
  const auto result = measure(folder / "weights.pt", {});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "kelvin measure: " + (folder / "weights.pt") +
                            ": its 4 tensors fit no architecture that kelvin knows; name one with "
                            "--model, or save the network with torch.jit.save\n");
}

}  // namespace kelvin::network_input_test
