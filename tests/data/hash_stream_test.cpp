#include "kelvin/data/hash_stream.h"

#include <gtest/gtest.h>

#include <set>

namespace kelvin {
namespace {

TEST(HashStream, IsAFunctionOfSeedAndIndex) {
  HashStream one(5, 6);
  HashStream two(5, 6);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(one.bits(), two.bits());
}

TEST(HashStream, NeighboursShareNothing) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (uint64_t index = 0; index < 50; ++index) {
      HashStream stream(seed, index);
      for (int i = 0; i < 10; ++i) seen.insert(stream.bits());
    }
  }
  EXPECT_EQ(seen.size(), 20u * 50 * 10);
}

TEST(HashStream, UniformFillsItsInterval) {
  HashStream stream(1, 1);
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < 10000; ++i) {
    const float value = stream.uniform(-2, 4);
    EXPECT_GE(value, -2);
    EXPECT_LT(value, 4);
    sum += value;
    squares += (value - 1) * (value - 1);
  }
  EXPECT_NEAR(sum / 10000, 1, 0.06);
  EXPECT_NEAR(squares / 10000, 3, 0.1);
}

TEST(HashStream, CoinAndBelowAreFair) {
  HashStream stream(2, 1);
  int heads = 0;
  int fours = 0;
  for (int i = 0; i < 10000; ++i) {
    heads += stream.coin() ? 1 : 0;
    fours += stream.below(5) == 4 ? 1 : 0;
  }
  EXPECT_NEAR(heads, 5000, 200);
  EXPECT_NEAR(fours, 2000, 160);
}

}  // namespace
}  // namespace kelvin
