#include "kelvin/experiment/trained_network.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "kelvin/experiment/run.h"
#include "kelvin/model/weights.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/tiny_run.h"

namespace kelvin {
namespace {

TEST(TrainedNetwork, OfARunHasItsLastWeightsAndTheChangesAskedFor) {
  const TemporaryFolder folder;
  run(tiny_config({R"(measure.names=["accuracy"])"}), folder / "run", kNoMetadata, {});
  Config changes;
  changes.set("measure.train_samples", 7);
  const auto network = open_run(folder / "run", changes, {});
  EXPECT_EQ(network.settings.measure.train_samples, 7);
  const auto again = network.settings.build_model(shape_for(network.data.own));
  load_weights(folder / "run/checkpoints/last/model.safetensors", *again);
  for (const auto& [name, tensor] : weights_of(*again)) {
    EXPECT_TRUE(tensor.equal(weights_of(*network.model).at(name))) << name;
  }
}

TEST(TrainedNetwork, OfAFileNeedsOne) {
  EXPECT_EQ(error_of([] { open_weights(tiny_config(), {}); }),
            "init.pretrained: must name a file of weights");
}

}  // namespace
}  // namespace kelvin
