#include "kelvin/model/script_graph.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/scripts.h"

namespace kelvin::script_graph_test {

std::vector<std::string> names_of(const std::vector<ScriptLayer>& layers) {
  std::vector<std::string> names;
  for (const auto& layer : layers) names.push_back(layer.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(ScriptGraph, FindsLayersByTheModulesThatOwnTheirWeights) {
  auto module = ScriptBuilder().layer("conv", {4, 3, 3, 3}).layer("fc", {2, 4}).with_forward(R"(
    x = torch.relu(torch.conv2d(x, self.conv.weight, self.conv.bias, [2, 2], [1, 1]))
    return torch.linear(x.mean([2, 3]), self.fc.weight, self.fc.bias)
)");
  module.eval();
  const auto graph = tapped_graph(module, "net");
  EXPECT_EQ(names_of(graph.layers), (Names{"conv", "fc"}));
  EXPECT_EQ(graph.layers[0].stride, 2);
  EXPECT_EQ(graph.layers[0].padding, 1);
  EXPECT_TRUE(graph.projections.empty());
}

// What a shortcut is projected with ends in the same sum as the layers beside it.
TEST(ScriptGraph, CountsNoProjectionOfAShortcutAsALayer) {
  auto module = ScriptBuilder()
                    .layer("a", {4, 3, 3, 3})
                    .layer("b", {4, 4, 3, 3})
                    .layer("shortcut", {4, 3, 1, 1})
                    .layer("fc", {2, 4})
                    .with_forward(R"(
    short = torch.conv2d(x, self.shortcut.weight, self.shortcut.bias)
    h = torch.relu(torch.conv2d(x, self.a.weight, self.a.bias, [1, 1], [1, 1]))
    h = torch.conv2d(h, self.b.weight, self.b.bias, [1, 1], [1, 1])
    h = torch.relu(h + short)
    return torch.linear(h.mean([2, 3]), self.fc.weight, self.fc.bias)
)");
  module.eval();
  const auto graph = tapped_graph(module, "net");
  EXPECT_EQ(names_of(graph.layers), (Names{"a", "b", "fc"}));
  EXPECT_EQ(names_of(graph.projections), (Names{"shortcut"}));
  EXPECT_GT(graph.layers[1].before_add, 0U);
  EXPECT_EQ(graph.layers[0].before_add, 0U);
}

TEST(ScriptGraph, FindsConvolutionsThatArePaddedByName) {
  auto module = ScriptBuilder().layer("a", {4, 3, 3, 3}).layer("fc", {2, 4}).with_forward(R"(
    x = torch.conv2d(x, self.a.weight, self.a.bias, [1, 1], "same")
    return torch.linear(x.mean([2, 3]), self.fc.weight, self.fc.bias)
)");
  module.eval();
  const auto graph = tapped_graph(module, "net");
  EXPECT_EQ(names_of(graph.layers), (Names{"a", "fc"}));
  EXPECT_EQ(graph.layers[0].padding, 1);
}

TEST(ScriptGraph, LeavesOutGroupedAndDilatedConvolutions) {
  auto module = ScriptBuilder()
                    .layer("grouped", {3, 1, 3, 3})
                    .layer("dilated", {4, 3, 3, 3})
                    .layer("fc", {2, 4})
                    .with_forward(R"(
    x = torch.conv2d(x, self.grouped.weight, self.grouped.bias, [1, 1], [1, 1], [1, 1], 3)
    x = torch.conv2d(x, self.dilated.weight, self.dilated.bias, [1, 1], [2, 2], [2, 2])
    return torch.linear(x.mean([2, 3]), self.fc.weight, self.fc.bias)
)");
  module.eval();
  EXPECT_EQ(names_of(tapped_graph(module, "net").layers), Names{"fc"});
}

TEST(ScriptGraph, TakesNoSoftmaxOverOtherDimensionsForAttention) {
  auto module = ScriptBuilder().layer("fc", {2, 3}).with_forward(R"(
    x = torch.softmax(x, 1)
    return torch.linear(x.mean([2, 3]), self.fc.weight, self.fc.bias)
)");
  module.eval();
  EXPECT_TRUE(tapped_graph(module, "net").attention.empty());
}

TEST(ScriptGraph, RefusesWhatWasTracedInTrainingMode) {
  auto module = ScriptBuilder().layer("fc", {2, 3}).with_forward(R"(
    x = torch.dropout(x, 0.5, True)
    return torch.linear(x, self.fc.weight, self.fc.bias)
)");
  module.eval();
  EXPECT_EQ(error_of([&] { tapped_graph(module, "x.pt"); }),
            "x.pt: was traced in training mode; call eval() before torch.jit.trace");
}

TEST(ScriptGraph, LeavesOutASoftmaxAfterTheLogits) {
  auto module = ScriptBuilder().layer("fc", {2, 3}).with_forward(R"(
    return torch.log_softmax(torch.linear(x, self.fc.weight, self.fc.bias), 1)
)");
  module.eval();
  const auto graph = tapped_graph(module, "net");
  EXPECT_EQ(graph.layers.back().pre_activation, 0U);
}

TEST(ScriptGraph, NeedsALinearLayerThatMakesTheLogits) {
  auto none = ScriptBuilder().layer("fc", {2, 3}).with_forward("    return x * 2\n");
  none.eval();
  EXPECT_EQ(error_of([&] { tapped_graph(none, "x.pt"); }),
            "x.pt: a linear layer must make the logits; no layer was found");
  auto later = ScriptBuilder()
                   .layer("fc", {2, 3})
                   .with_forward("    return 2 * torch.linear(x, self.fc.weight, self.fc.bias)\n");
  later.eval();
  EXPECT_EQ(error_of([&] { tapped_graph(later, "x.pt"); }),
            "x.pt: a linear layer must make the logits; the last layer found is 'fc'");
}

TEST(ScriptGraph, MustGoFromImagesToLogits) {
  auto pair = ScriptBuilder().layer("fc", {2, 3}).with_forward("    return x, x\n");
  pair.eval();
  EXPECT_EQ(error_of([&] { tapped_graph(pair, "x.pt"); }),
            "x.pt: forward must return logits [samples, classes], returns Tuple[Tensor, Tensor]");
  torch::jit::Module two("net");
  two.define("def forward(self, x, y):\n    return x + y\n");
  two.eval();
  EXPECT_EQ(error_of([&] { tapped_graph(two, "x.pt"); }),
            "x.pt: forward must take images alone, takes 2 arguments");
}

}  // namespace kelvin::script_graph_test
