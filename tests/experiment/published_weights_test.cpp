#include <gtest/gtest.h>
#include <torch/torch.h>

#include "kelvin/data/dataset.h"
#include "kelvin/experiment/evaluate/extract.h"
#include "kelvin/model/tensors_file.h"
#include "kelvin/model/weights.h"
#include "tests/support/built_model.h"
#include "tests/support/command.h"
#include "tests/support/real_data.h"

namespace kelvin::published_weights_test {

class PublishedResNet20 : public RealData {
 protected:
  std::filesystem::path file() const {
    return data_folder() / "weights" / "cifar10-resnet20.safetensors";
  }
};

// Its file says 91.73 %.
TEST_F(PublishedResNet20, ReachesItsClaimedAccuracy) {
  const auto model = built_model("resnet20");
  load_weights(file(), *model);
  const auto dataset = load_dataset("cifar10", {.train_samples = 10,
                                                .data_folder = data_folder(),
                                                .normalisation = Normalisation::imagenet});
  int64_t right = 0;
  extract(*model, dataset, dataset, {}, [&](const Record& record) {
    right += (record.logits.argmax(1) == record.labels).sum().item<int64_t>();
  });
  EXPECT_EQ(dataset.test.size(), 10'000);
  EXPECT_NEAR(static_cast<double>(right) / 10'000, 0.9173, 0.0003);
}

TEST_F(PublishedResNet20, IsTheSameWhenWrittenAndReadAgain) {
  const TemporaryFolder folder;
  const auto tensors = read_tensors(file());
  EXPECT_EQ(tensors.size(), 97U);
  write_safetensors(folder / "a", tensors);
  const auto again = read_tensors(folder / "a");
  ASSERT_EQ(again.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(again.at(name).equal(tensor)) << name;
  write_safetensors(folder / "b", again);
  EXPECT_EQ(whole_file(folder / "b"), whole_file(folder / "a"));

  // Through a network, which has our names for them and counts batches as well.
  const auto model = built_model("resnet20");
  load_weights(file(), *model);
  save_weights(folder / "c", *model);
  const auto ours = read_tensors(folder / "c");
  EXPECT_TRUE(ours.at("fc.weight").equal(tensors.at("linear.weight")));
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with("linear")) continue;
    EXPECT_TRUE(ours.at(name).equal(tensor)) << name;
  }
}

}  // namespace kelvin::published_weights_test
