#include "kelvin/experiment/curves_file.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "kelvin/core/npz_file.h"
#include "kelvin/math/tensor_arrays.h"
#include "tests/support/command.h"
#include "tests/support/tensors.h"

namespace kelvin {
namespace {

TEST(CurvesFile, KeepsWhatItHeldAndReplacesWhatIsNew) {
  const TemporaryFolder folder;
  const std::filesystem::path npz = folder / "curves.npz";
  add_curves(npz, {});
  EXPECT_FALSE(std::filesystem::exists(npz));
  add_curves(npz, {{"steps", doubles({1, 2})}, {"spectrum/a", doubles({3})}});
  add_curves(npz, {{"spectrum/a", doubles({4, 5})}});
  const auto arrays = read_npz(npz);
  ASSERT_EQ(arrays.size(), 2U);
  expect_close(tensor_of(arrays.at("steps")), doubles({1, 2}), 0);
  expect_close(tensor_of(arrays.at("spectrum/a")), doubles({4, 5}), 0);
}

}  // namespace
}  // namespace kelvin
