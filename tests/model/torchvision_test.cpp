#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <string>
#include <vector>

#include "kelvin/model/model.h"
#include "kelvin/ops/reference_ops.h"
#include "tests/support/oracle.h"
#include "tests/support/same_weights.h"

// Networks against those of Debian's torchvision with the same weights.

namespace kelvin::torchvision_test {

struct Twin {
  std::string name;    // in tests
  std::string model;   // of ours
  std::string python;  // statements that leave the twin in m
  int64_t side = 224;  // of the images
  int64_t classes = 1000;
  int64_t parameters = 0;  // as published; 0: not published
  double giga_macs = 0;    // as published; 0: not published
  bool with_gradients = false;
  // More of the layers that the others have, in seconds instead of tenths.
  bool is_large = false;
};

const std::string kSmallResNet =
    "m.conv1 = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False)\nm.maxpool = torch.nn.Identity()\n";
const std::string kSmallVgg =
    "m.avgpool = torch.nn.AdaptiveAvgPool2d(1)\n"
    "m.classifier[0] = torch.nn.Linear(512, 512)\n"
    "m.classifier[3] = torch.nn.Linear(512, 512)\n"
    "m.classifier[6] = torch.nn.Linear(512, 10)\n";

const std::vector<Twin>& all_twins() {
  static const std::vector<Twin> all = {
      {.name = "ResNet18",
       .model = "resnet18",
       .python = "m = models.resnet18()\n",
       .parameters = 11'689'512,
       .giga_macs = 1.814,
       .with_gradients = true},
      {.name = "ResNet34",
       .model = "resnet34",
       .python = "m = models.resnet34()\n",
       .parameters = 21'797'672,
       .giga_macs = 3.664,
       .is_large = true},
      {.name = "ResNet50",
       .model = "resnet50",
       .python = "m = models.resnet50()\n",
       .parameters = 25'557'032,
       .giga_macs = 4.089,
       .with_gradients = true},
      {.name = "Vgg11",
       .model = "vgg11",
       .python = "m = models.vgg11()\n",
       .parameters = 132'863'336,
       .giga_macs = 7.609,
       .is_large = true},
      {.name = "Vgg11Bn",
       .model = "vgg11_bn",
       .python = "m = models.vgg11_bn()\n",
       .parameters = 132'868'840,
       .giga_macs = 7.609,
       .with_gradients = true,
       .is_large = true},
      {.name = "Vgg16",
       .model = "vgg16",
       .python = "m = models.vgg16()\n",
       .parameters = 138'357'544,
       .giga_macs = 15.47,
       .is_large = true},
      {.name = "Vgg16Bn",
       .model = "vgg16_bn",
       .python = "m = models.vgg16_bn()\n",
       .parameters = 138'365'992,
       .giga_macs = 15.47,
       .is_large = true},
      {.name = "Vgg19",
       .model = "vgg19",
       .python = "m = models.vgg19()\n",
       .parameters = 143'667'240,
       .giga_macs = 19.632,
       .is_large = true},
      {.name = "Vgg19Bn",
       .model = "vgg19_bn",
       .python = "m = models.vgg19_bn()\n",
       .parameters = 143'678'248,
       .giga_macs = 19.632,
       .is_large = true},
      {.name = "ResNet18ForCifar",
       .model = "resnet18",
       .python = "m = models.resnet18(num_classes=10)\n" + kSmallResNet,
       .side = 32,
       .classes = 10,
       .with_gradients = true},
      {.name = "ResNet50ForCifar",
       .model = "resnet50",
       .python = "m = models.resnet50(num_classes=10)\n" + kSmallResNet,
       .side = 32,
       .classes = 10},
      {.name = "Vgg19ForCifar",
       .model = "vgg19",
       .python = "m = models.vgg19(num_classes=10)\n" + kSmallVgg,
       .side = 32,
       .classes = 10,
       .with_gradients = true}};
  return all;
}

std::vector<Twin> twins(bool is_large) {
  auto twins = all_twins();
  std::erase_if(twins, [&](const Twin& twin) { return twin.is_large != is_large; });
  return twins;
}

torch::Tensor images_for(const Twin& twin) {
  return torch::randn({1, 3, twin.side, twin.side}, at::make_generator<at::CPUGeneratorImpl>(7));
}

// What torchvision makes of twins, in one start of Python.
NamedTensors made_by_torchvision(const std::vector<Twin>& twins) {
  std::string script = std::string(kSameWeightsPython) + "from torchvision import models\n";
  for (const auto& twin : twins) {
    const auto side = std::to_string(twin.side);
    script += twin.python + "m.eval()\ndraw_same_weights(m)\nimages = torch.randn(1, 3, " + side +
              ", " + side + ", generator=torch.Generator().manual_seed(7))\n";
    const auto key = "'" + twin.name + "/";
    if (twin.with_gradients) {
      script += "logits = m(images)\nlogits.square().sum().backward()\nout[" + key +
                "gradients'] = projections(m)\n";
    } else {
      script += "with torch.no_grad(): logits = m(images)\n";
    }
    script += "out[" + key + "logits'] = logits.detach().numpy()\nout[" + key +
              "parameters'] = np.array(sum(p.numel() for p in m.parameters()))\n";
  }
  return oracle(script, {});
}

class Torchvision : public testing::TestWithParam<Twin> {
 protected:
  std::shared_ptr<Model> built() const {
    Settings settings("model", {});
    const auto& twin = GetParam();
    auto model =
        models()
            .find(twin.model)
            .build({.height = twin.side, .width = twin.side, .classes = twin.classes}, settings);
    model->eval();
    draw_same_weights(*model);
    return model;
  }

  torch::Tensor theirs(const std::string& what) {
    return from_torchvision().at(GetParam().name + "/" + what);
  }

 private:
  // Python starts once for all small twins, and for each large one.
  const NamedTensors& from_torchvision() {
    if (!GetParam().is_large) {
      static const auto small = made_by_torchvision(twins(false));
      return small;
    }
    if (large_.empty()) large_ = made_by_torchvision({GetParam()});
    return large_;
  }

  NamedTensors large_;
};

// No entry differs by more than 1e-5 of the largest.
void expect_relatively_close(const torch::Tensor& actual, const torch::Tensor& expected) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  const auto scale = expected.abs().max().item<double>();
  ASSERT_GT(scale, 1e-3) << "the comparison would show nothing";
  EXPECT_LT((actual - expected).abs().max().item<double>(), 1e-5 * scale);
}

TEST_P(Torchvision, GivesTheSameOutputsGradientsAndCounts) {
  const auto& twin = GetParam();
  const auto model = built();
  const ReferenceOpsScope reference(true);  // layers_test.cpp compares the paths
  Taps taps;
  if (twin.with_gradients) {
    const auto logits = model->forward(images_for(twin), &taps);
    expect_relatively_close(logits.detach(), theirs("logits"));
    logits.square().sum().backward();
    // Each row relative to its gradient's norm.
    const auto expected = theirs("gradients");
    const auto norms = expected.select(1, 0).unsqueeze(1);
    const auto difference = (gradient_projections(*model) - expected).abs() / norms;
    EXPECT_LT(difference.max().item<double>(), 1e-5);
  } else {
    torch::NoGradGuard no_grad;
    expect_relatively_close(model->forward(images_for(twin), &taps), theirs("logits"));
  }
  EXPECT_EQ(parameter_count(*model), theirs("parameters").item<int64_t>());
  if (twin.parameters > 0) {
    EXPECT_EQ(parameter_count(*model), twin.parameters);
    EXPECT_NEAR(static_cast<double>(taps.macs()) / 1e9, twin.giga_macs, 0.0006);
  }
}

INSTANTIATE_TEST_SUITE_P(Small, Torchvision, testing::ValuesIn(twins(false)),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(LargeSlow, Torchvision, testing::ValuesIn(twins(true)),
                         [](const auto& info) { return info.param.name; });

}  // namespace kelvin::torchvision_test
