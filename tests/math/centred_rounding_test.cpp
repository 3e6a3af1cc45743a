#include "kelvin/math/centred_rounding.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin {
namespace {

TEST(CentredRounding, IsThatOfLibTorchToTheLastBit) {
  for (const int64_t dims : {1, 15, 64, 1001}) {
    const auto rows = (3 * noise({7, dims}, 1)).to(torch::kFloat32);
    const auto mean = noise({dims}, 2).to(torch::kFloat32);
    EXPECT_TRUE(centred_rounding(rows, mean).equal((rows - mean).to(torch::kBFloat16))) << dims;
  }
}

TEST(CentredRounding, TakesTiesToEven) {
  const auto rows = torch::tensor({{1.00390625F, 1.01171875F}});  // halves between two neighbours
  const auto rounded = centred_rounding(rows, torch::zeros({2})).to(torch::kFloat64);
  expect_close(rounded[0], doubles({1.0, 1.015625}), 0);
}

TEST(CentredRounding, KeepsWhatIsNotFinite) {
  const auto infinity = std::numeric_limits<float>::infinity();
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const auto rounded =
      centred_rounding(torch::tensor({{infinity, -infinity, nan, -nan}}), torch::zeros({4}));
  EXPECT_TRUE(torch::isinf(rounded.slice(1, 0, 2)).all().item<bool>());
  EXPECT_TRUE(torch::isnan(rounded.slice(1, 2, 4)).all().item<bool>());
}

TEST(CentredRounding, RejectsWhatDoesNotFit) {
  EXPECT_EQ(error_of([] {
              centred_rounding(torch::zeros({2, 3}), torch::zeros({2}));
            }),
            "centred_rounding: needs float32 rows [count, dims] and mean [dims], got [2, 3] and "
            "[2]");
}

}  // namespace
}  // namespace kelvin
