#include "kelvin/numerics/singular_gap.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "kelvin/numerics/post_softmax.h"
#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::singular_gap_test {

TEST(SingularGap, IsTightForColumnsThatAreAllTheSameOneHot) {
  for (const int64_t n : {2, 5, 64}) {
    auto same = torch::zeros({n, n}, torch::kFloat64);
    same[1].fill_(1);
    const auto found = singular_gap(same);
    EXPECT_NEAR(found.similarity, static_cast<double>(n - 1), 1e-12);
    EXPECT_NEAR(found.gap(), std::sqrt(static_cast<double>(n)), 1e-12);
    EXPECT_NEAR(found.slack(), 0, 1e-12);
  }
}

TEST(SingularGap, OfAPermutationIsZeroBelowALooseBound) {
  const auto found = singular_gap(torch::eye(9, torch::kFloat64).roll(2, 0));
  EXPECT_NEAR(found.gap(), 0, 1e-12);
  EXPECT_NEAR(found.bound, 1 - 1.0 / 3, 1e-12);
  EXPECT_EQ(found.similarity, 0);
}

TEST(SingularGap, StaysBelowItsBoundForRandomSoftmaxes) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const auto n = static_cast<int64_t>(2 + seed % 15);
    const auto scale = std::pow(10.0, static_cast<double>(seed % 6) - 2);
    const auto found = singular_gap(
        column_softmax(scale * low_rank_matrix(n, 1 + static_cast<int64_t>(seed % 3), seed)));
    EXPECT_GE(found.gap(), -1e-12) << seed;
    EXPECT_GE(found.slack(), -1e-12) << seed;
  }
}

TEST(SingularGap, IsThatOfNumPyForAnyShape) {
  const auto tall = column_softmax(3 * noise({9, 4}, 0));
  const auto wide = column_softmax(3 * noise({4, 9}, 1));
  const auto expected = oracle(
      "for name in x:\n"
      "  s = x[name]; g = s.T @ s; v = np.linalg.svd(s, compute_uv=False)\n"
      "  v = np.append(v, 0) if s.shape[1] > s.shape[0] else v\n"
      "  out[name] = np.array([v.max(), v.min(), (g - np.diag(np.diag(g))).sum(1).max()])",
      {{"tall", tall}, {"wide", wide}});
  for (const auto& [name, columns] : {std::pair("tall", tall), std::pair("wide", wide)}) {
    const auto found = singular_gap(columns);
    expect_close(doubles({found.largest, found.smallest, found.similarity}), expected.at(name),
                 1e-10);
    EXPECT_GE(found.slack(), 0);
  }
}

TEST(SingularGap, IgnoresTheOrderOfColumns) {
  const auto columns = column_softmax(2 * noise({6, 6}, 3));
  EXPECT_NEAR(singular_gap(columns).slack(), singular_gap(columns.flip(1)).slack(), 1e-12);
}

TEST(SingularGap, RejectsWhatIsNoDistribution) {
  EXPECT_EQ(error_of([] { singular_gap(torch::zeros({3})); }),
            "singular_gap: needs a matrix, got [3]");
  EXPECT_EQ(error_of([] {
              singular_gap(torch::full({2, 1}, 0.75));
            }),
            "singular_gap: columns must be probabilities that sum to 1, got entries from 0.75 and "
            "sums from 1.5 to 1.5");
  EXPECT_EQ(error_of([] {
              singular_gap(doubles({1.5, -0.5}).unsqueeze(1));
            }),
            "singular_gap: columns must be probabilities that sum to 1, got entries from -0.5 and "
            "sums from 1 to 1");
  EXPECT_NE(error_of([] { singular_gap(torch::full({2, 2}, NAN)); }), "");
}

}  // namespace kelvin::singular_gap_test
