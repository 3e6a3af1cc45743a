#include "kelvin/core/seeds.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <string>

namespace kelvin::seeds_test {

// The first outputs of splitmix64 seeded with 0, as its authors publish them.
TEST(Scramble, IsSplitmix64) {
  EXPECT_EQ(scramble(0), 0xe220a8397b1dcdafU);
  EXPECT_EQ(scramble(0x9e3779b97f4a7c15U), 0x6e789e6aa1b965f4U);
  EXPECT_EQ(scramble(2 * 0x9e3779b97f4a7c15U), 0x06c45d188009454fU);
}

TEST(Scramble, ChangesHalfOfTheBitsForANeighbour) {
  int changed = 0;
  for (uint64_t i = 0; i < 1000; ++i) changed += std::popcount(scramble(i) ^ scramble(i + 1));
  EXPECT_NEAR(changed / 1000.0, 32, 1);
}

TEST(Scramble, GivesNoOutputTwice) {
  std::set<uint64_t> outputs;
  for (uint64_t i = 0; i < 10000; ++i) outputs.insert(scramble(i));
  EXPECT_EQ(outputs.size(), 10000U);
}

// FNV-1a of nothing is its offset basis.
TEST(NamedSeed, OfAnEmptyNameFollowsFromTheRootAlone) {
  EXPECT_EQ(derive_seed(7, ""), scramble(scramble(7) ^ 0xcbf29ce484222325U));
}

// FNV-1a of "foobar", from its authors' test vectors.
TEST(NamedSeed, HashesTheNameByFnv1a) {
  EXPECT_EQ(derive_seed(7, "foobar"), scramble(scramble(7) ^ 0x85944171f73967e8U));
}

TEST(NamedSeed, IsTheSameForTheSameRootAndName) {
  EXPECT_EQ(derive_seed(3, "init"), derive_seed(3, "init"));
}

TEST(NamedSeed, DiffersBetweenAllRootsAndNames) {
  std::set<uint64_t> seeds;
  for (uint64_t root = 0; root < 1000; ++root) {
    for (const char* stream : {"init", "order", "probe", "", "tini"}) {
      seeds.insert(derive_seed(root, stream));
    }
  }
  EXPECT_EQ(seeds.size(), 5000U);
}

TEST(NamedSeed, ReadsBytesAboveAsciiTheSameOnEveryMachine) {
  EXPECT_EQ(derive_seed(0, "\xff"),
            scramble(scramble(0) ^ ((0xcbf29ce484222325U ^ 0xffU) * 0x100000001b3U)));
}

}  // namespace kelvin::seeds_test
