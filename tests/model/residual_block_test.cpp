#include "kelvin/model/residual_block.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace kelvin::residual_block_test {

// A block whose last normalisation is zero is its shortcut, then ReLU.
template <class Block>
torch::Tensor shortcut_of(const BlockShape& shape, const torch::Tensor& input) {
  torch::NoGradGuard no_grad;
  Block block(shape);
  block.eval();
  const auto last = Block::kExpansion == 1 ? "bn2.weight" : "bn3.weight";
  for (auto& item : block.named_parameters()) {
    if (item.key() == last) item.value().zero_();
  }
  return block.forward(input, "block", nullptr);
}

TEST(BasicBlock, AddsItsInput) {
  const auto input = torch::rand({2, 4, 6, 6});
  EXPECT_TRUE(shortcut_of<BasicBlock>({.inputs = 4, .outputs = 4}, input).equal(input));
}

TEST(BasicBlock, PadsWithZeroChannelsAndTakesEverySecondPixel) {
  const auto input = torch::rand({2, 4, 6, 6});
  const auto output = shortcut_of<BasicBlock>(
      {.inputs = 4, .outputs = 8, .stride = 2, .shortcut = Shortcut::padded}, input);
  ASSERT_EQ(output.sizes(), (torch::IntArrayRef{2, 8, 3, 3}));
  EXPECT_EQ(output.slice(1, 0, 2).abs().max().item<float>(), 0);
  EXPECT_EQ(output.slice(1, 6, 8).abs().max().item<float>(), 0);
  EXPECT_EQ(output[1][2 + 3][1][2].item<float>(), input[1][3][2][4].item<float>());
}

TEST(BasicBlock, HasNoParametersInAPaddedShortcut) {
  const BasicBlock padded({.inputs = 4, .outputs = 8, .stride = 2, .shortcut = Shortcut::padded});
  const BasicBlock projected({.inputs = 4, .outputs = 8, .stride = 2});
  EXPECT_EQ(padded.parameters().size(), 6U);
  EXPECT_EQ(projected.parameters().size(), 9U);
}

TEST(Bottleneck, AddsItsInputAndIsNarrowInside) {
  const auto input = torch::rand({2, 8, 6, 6});
  EXPECT_TRUE(shortcut_of<Bottleneck>({.inputs = 8, .outputs = 8}, input).equal(input));
  Bottleneck block({.inputs = 8, .outputs = 8});
  block.eval();
  Taps taps;
  block.forward(input, "block", &taps);
  ASSERT_EQ(taps.layers().size(), 3U);
  EXPECT_EQ(taps.layers()[0].weight.sizes(), (torch::IntArrayRef{2, 8, 1, 1}));
  EXPECT_EQ(taps.layers()[1].weight.sizes(), (torch::IntArrayRef{2, 2, 3, 3}));
  EXPECT_EQ(taps.layers()[2].weight.sizes(), (torch::IntArrayRef{8, 2, 1, 1}));
  EXPECT_EQ(taps.layers()[1].name, "block.conv2");
}

// What the last layer of a block says before the shortcut is added; nothing is added to the others.
template <class Block>
void expect_before_add_without_shortcut(const BlockShape& shape) {
  torch::manual_seed(3);
  Block block(shape);
  block.eval();
  const auto input = torch::rand({2, shape.inputs, 6, 6});
  Taps taps;
  const auto output = block.forward(input, "block", &taps);
  const auto& layers = taps.layers();
  for (size_t i = 0; i + 1 < layers.size(); ++i) EXPECT_FALSE(layers[i].before_add.defined());
  ASSERT_TRUE(layers.back().before_add.defined());
  EXPECT_TRUE(torch::relu(layers.back().before_add + input).equal(output));
  EXPECT_FALSE(torch::relu(layers.back().before_add).allclose(output));
}

TEST(BasicBlock, TellsWhatItHadBeforeTheShortcut) {
  expect_before_add_without_shortcut<BasicBlock>({.inputs = 4, .outputs = 4});
}

TEST(Bottleneck, TellsWhatItHadBeforeTheShortcut) {
  expect_before_add_without_shortcut<Bottleneck>({.inputs = 8, .outputs = 8});
}

TEST(Bottleneck, HalvesItsMapsInTheMiddle) {
  Bottleneck block({.inputs = 4, .outputs = 8, .stride = 2});
  Taps taps;
  block.forward(torch::rand({2, 4, 6, 6}), "block", &taps);
  EXPECT_EQ(taps.layers()[0].output.size(2), 6);
  EXPECT_EQ(taps.layers()[1].output.size(2), 3);
}

}  // namespace kelvin::residual_block_test
