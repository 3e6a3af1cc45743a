#include "kelvin/model/description.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/support/built_model.h"

namespace kelvin::description_test {

TEST(Describe, ListsTheLayersOfAnMlp) {
  const ModelShape shape{.channels = 1, .height = 2, .width = 3, .classes = 4};
  const auto model = built_model("mlp", {{"width", 5}, {"depth", 2}}, shape);
  const auto description = describe(*model, shape);
  ASSERT_EQ(description.layers.size(), 2U);
  EXPECT_EQ(description.layers[0].name, "layers.0");
  EXPECT_EQ(description.layers[0].weight, (std::vector<int64_t>{5, 6}));
  EXPECT_EQ(description.layers[0].input, std::vector<int64_t>{6});
  EXPECT_EQ(description.layers[1].output, std::vector<int64_t>{4});
  EXPECT_EQ(description.layers[0].parameters, 35);
  EXPECT_EQ(description.layers[0].macs, 30);
  EXPECT_EQ(description.parameters, 35 + 24);
  EXPECT_EQ(description.macs, 30 + 20);
}

TEST(Describe, CountsShortcutsAndNormalisationsInTheTotals) {
  const auto model = built_model("resnet18", {{"width", 0.125}});
  const auto description = describe(*model, {});
  int64_t parameters = 0;
  int64_t macs = 0;
  for (const auto& layer : description.layers) {
    parameters += layer.parameters;
    macs += layer.macs;
  }
  // Three projections of 8, 16, 32 to 16, 32, 64 channels on maps of 16, 8, 4 pixels a side.
  EXPECT_EQ(description.macs - macs, 8 * 16 * 256 + 16 * 32 * 64 + 32 * 64 * 16);
  const int64_t normed = 5 * 8 + 5 * 16 + 5 * 32 + 5 * 64;
  EXPECT_EQ(description.parameters - parameters, 2 * normed + 8 * 16 + 16 * 32 + 32 * 64);
}

TEST(Describe, LeavesTheModelAsItWas) {
  const auto model = built_model("vgg11_bn", {{"width", 0.125}});
  model->train();
  describe(*model, {});
  EXPECT_TRUE(model->is_training());
  EXPECT_EQ(model->named_buffers()["features.1.num_batches_tracked"].item<int64_t>(), 0);
}

}  // namespace kelvin::description_test
