#include "kelvin/model/torchscript.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <string>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/scripts.h"

namespace kelvin::torchscript_test {

const ModelShape kSmall = {.channels = 3, .height = 8, .width = 8, .classes = 2};

class Script : public testing::Test {
 protected:
  std::string saved(const torch::jit::Module& module) const {
    module.save(folder_ / "net.pt");
    return folder_ / "net.pt";
  }

  std::shared_ptr<Model> loaded(const torch::jit::Module& module,
                                const ModelShape& shape = kSmall) const {
    return std::make_shared<TorchscriptModel>(saved(module), shape);
  }

  TemporaryFolder folder_;
  torch::NoGradGuard no_grad_;
  torch::Tensor images_ = noise({5, 3, 8, 8}, 1).to(torch::kFloat32);
};

// Overwrites what it computes wherever it can.
class ResidualScript : public Script {
 protected:
  ResidualScript() {
    ScriptBuilder builder;
    module_ = builder.layer("conv", {4, 3, 3, 3})
                  .layer("inner", {4, 4, 3, 3})
                  .layer("fc", {2, 4})
                  .with_forward(R"(
    h = torch.relu_(torch.conv2d(x, self.conv.weight, self.conv.bias, [2, 2], [1, 1]))
    g = torch.conv2d(h, self.inner.weight, self.inner.bias, [1, 1], [1, 1])
    g += h
    g = torch.relu_(g)
    return torch.linear(g.mean([2, 3]), self.fc.weight, self.fc.bias)
)");
  }

  torch::jit::Module module_{"none"};
};

TEST_F(ResidualScript, ComputesWhatTheModuleDoes) {
  auto module = module_;
  const auto expected = module.forward({images_}).toTensor();
  const auto model = loaded(module_);
  EXPECT_TRUE(model->forward(images_).equal(expected));
  Taps taps;
  EXPECT_TRUE(model->forward(images_, &taps).equal(expected));
}

// Also where relu_ and += overwrite them.
TEST_F(ResidualScript, RecordsLayersWhoseProductsAreTheirPreActivations) {
  Taps taps;
  loaded(module_)->forward(images_, &taps);
  ASSERT_EQ(taps.layers().size(), 3U);
  for (const auto& layer : taps.layers()) {
    const auto product =
        layer.weight.dim() == 4
            ? torch::conv2d(layer.input, layer.weight, layer.bias, layer.stride, layer.padding)
            : torch::linear(layer.input, layer.weight, layer.bias);
    EXPECT_TRUE(layer.pre_activation.allclose(product, 1e-5, 1e-6)) << layer.name;
  }
  const auto& first = taps.layers()[0];
  const auto& inner = taps.layers()[1];
  EXPECT_TRUE(first.output.equal(first.pre_activation.relu()));
  EXPECT_TRUE(inner.before_add.equal(inner.pre_activation));
  EXPECT_TRUE(inner.output.equal((inner.pre_activation + first.output).relu()));
  EXPECT_TRUE(taps.layers()[2].input.equal(inner.output.mean({2, 3})));
}

TEST_F(ResidualScript, HasItsParametersAndTheirCost) {
  const auto model = loaded(module_);
  EXPECT_EQ(parameter_count(*model), 4 * 3 * 9 + 4 + 4 * 4 * 9 + 4 + 2 * 4 + 2);
  Taps taps;
  model->forward(images_.slice(0, 0, 1), &taps);
  EXPECT_EQ(taps.macs(), 16 * 4 * 3 * 9 + 16 * 4 * 4 * 9 + 8);
}

TEST_F(ResidualScript, MustHaveAsManyOutputsAsThereAreClasses) {
  auto shape = kSmall;
  shape.classes = 10;
  const auto path = saved(module_);
  EXPECT_EQ(error_of([&] { TorchscriptModel(path, shape); }),
            path + ": has 2 outputs; the dataset has 10 classes");
}

TEST_F(ResidualScript, SaysInOneLineThatImagesDoNotFit) {
  auto shape = kSmall;
  shape.channels = 1;
  const auto path = saved(module_);
  const auto message = error_of([&] { TorchscriptModel(path, shape); });
  EXPECT_TRUE(message.starts_with(path + ": its code fails on images of 1 x 8 x 8: ")) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST_F(ResidualScript, CutOffAnywhereIsAnErrorOfOneLine) {
  const auto path = saved(module_);
  const auto whole = read_file(path);
  for (size_t length = 0; length < whole.size(); length += 211) {
    write_file_atomically(path, whole.substr(0, length));
    const auto message = error_of([&] { TorchscriptModel(path, kSmall); });
    EXPECT_TRUE(message.starts_with(path + ": ")) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

// What one layer reads, another part of the network has written into.
TEST_F(Script, RecordsInputsAsTheirLayerFindsThem) {
  const auto model = loaded(ScriptBuilder()
                                .layer("a", {4, 3, 3, 3})
                                .layer("b", {4, 4, 1, 1})
                                .layer("fc", {2, 4})
                                .with_forward(R"(
    x.sub_(0.5)
    h = torch.conv2d(x, self.a.weight, self.a.bias)
    g = torch.sigmoid(h)
    h.relu_()
    k = torch.conv2d(h, self.b.weight, self.b.bias)
    k[:, 0] = 0.0
    return torch.linear((g + k).mean([2, 3]), self.fc.weight, self.fc.bias)
)"));
  const auto before = images_.clone();
  Taps taps;
  model->forward(images_, &taps);
  EXPECT_TRUE(images_.equal(before));
  ASSERT_EQ(taps.layers().size(), 3U);
  for (const auto& layer : taps.layers()) {
    const auto product = layer.weight.dim() == 4
                             ? torch::conv2d(layer.input, layer.weight, layer.bias)
                             : torch::linear(layer.input, layer.weight, layer.bias);
    EXPECT_TRUE(layer.pre_activation.allclose(product, 1e-5, 1e-6)) << layer.name;
  }
}

TEST_F(Script, MayBeFrozenBeforeItIsSaved) {
  auto module =
      ScriptBuilder()
          .layer("fc", {2, 192})
          .with_forward("    return torch.linear(x.flatten(1), self.fc.weight, self.fc.bias)\n");
  module.eval();
  const auto model = loaded(torch::jit::freeze(module));
  EXPECT_EQ(parameter_count(*model), 2 * 192 + 2);
  Taps taps;
  model->forward(images_, &taps);
  EXPECT_EQ(taps.layers().size(), 1U);
}

TEST_F(Script, RecordsAttentionOfHeads) {
  const auto model = loaded(ScriptBuilder().layer("fc", {2, 8}).with_forward(R"(
    scores = torch.matmul(x, x.transpose(2, 3))
    weights = torch.softmax(scores, -1)
    return torch.linear(torch.matmul(weights, x).mean([1, 2]), self.fc.weight, self.fc.bias)
)"));
  Taps taps;
  model->forward(images_, &taps);
  ASSERT_EQ(taps.attention().size(), 1U);
  EXPECT_TRUE(taps.attention()[0].weights.equal(taps.attention()[0].logits.softmax(-1)));
}

TEST(TorchscriptModels, NeedAFile) {
  Settings settings("model", {});
  EXPECT_EQ(error_of([&] { models().find("torchscript").build(kSmall, settings); }),
            "model.file: must name a file of torch.jit.save");
}

}  // namespace kelvin::torchscript_test
