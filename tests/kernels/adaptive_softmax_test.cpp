#include "kelvin/kernels/adaptive_softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tests/support/adaptive_rows.h"

namespace kelvin::adaptive_softmax_test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kUntouched = 77;

struct RowFacts {
  std::vector<float> entropy, beta, spread, top_weight, largest, sum, mean, slope;
};

// Room for the numbers of all rows of `work`.
template <class Number>
RowFacts ask_for_all(AdaptiveSoftmaxRows<Number>& work) {
  const std::vector<float> room(static_cast<size_t>(work.rows), kUntouched);
  RowFacts facts{room, room, room, room, room, room, room, room};
  work.numbers = {.entropy = facts.entropy.data(),
                  .beta = facts.beta.data(),
                  .spread = facts.spread.data(),
                  .top_weight = facts.top_weight.data(),
                  .largest = facts.largest.data(),
                  .sum = facts.sum.data(),
                  .mean = facts.mean.data(),
                  .slope = facts.slope.data()};
  return facts;
}

struct Run {
  std::vector<float> result;
  RowFacts facts;
};

Run run(const std::vector<float>& logits, int64_t columns, InstructionSet set,
        double inverse_temperature = 1) {
  Run run;
  run.result.assign(logits.size(), kUntouched);
  AdaptiveSoftmaxRows<float> work{.logits = logits.data(),
                                  .rows = static_cast<int64_t>(logits.size()) / columns,
                                  .columns = columns,
                                  .inverse_temperature = inverse_temperature,
                                  .curve = published_curve(),
                                  .result = run.result.data()};
  run.facts = ask_for_all(work);
  adaptive_softmax_rows(work, 0, work.rows, set);
  return run;
}

void expect_exact(const std::vector<float>& logits, int64_t columns, const Run& run,
                  double inverse_temperature = 1) {
  const auto width = static_cast<size_t>(columns);
  for (size_t r = 0; r < logits.size() / width; ++r) {
    const std::vector<double> row(logits.begin() + static_cast<int64_t>(r * width),
                                  logits.begin() + static_cast<int64_t>((r + 1) * width));
    const auto exact = exact_row(row, inverse_temperature);
    EXPECT_NEAR(run.facts.entropy[r], exact.entropy, 2e-6);
    EXPECT_NEAR(run.facts.beta[r], exact.beta, 1e-5);
    EXPECT_NEAR(run.facts.slope[r], exact.slope, 3e-5);
    EXPECT_NEAR(run.facts.spread[r], exact.spread, 1e-6 * exact.spread);
    EXPECT_NEAR(run.facts.top_weight[r], exact.top_weight, 1e-6);
    double worst = 0;
    for (size_t i = 0; i < width; ++i) {
      worst = std::max(worst,
                       std::abs(static_cast<double>(run.result[r * width + i]) - exact.result[i]));
    }
    ASSERT_LT(worst, 1e-6) << "row " << r;
  }
}

class AdaptiveSoftmaxKernel : public testing::TestWithParam<InstructionSet> {};

TEST_P(AdaptiveSoftmaxKernel, IsExactForRowsOfAnyLength) {
  for (const int64_t columns :
       {1,  2,  3,   4,   5,   7,    8,    9,    15,   16,   17,    31,   32,
        33, 64, 100, 255, 256, 1000, 2047, 2048, 2049, 5003, 16384, 65536}) {
    SCOPED_TRACE(columns);
    const int64_t rows = columns < 300 ? 131 : 3;  // several groups and a part of one
    for (const double deviation : {0.5, 4.0}) {
      const auto logits = random_floats(rows * columns, deviation, 1);
      expect_exact(logits, columns, run(logits, columns, GetParam()));
    }
  }
}

TEST_P(AdaptiveSoftmaxKernel, DividesByTheTemperatureFirst) {
  for (const int64_t columns : {20, 3000}) {
    const auto logits = random_floats(5 * columns, 2, 2);
    for (const double temperature : {0.25, 3.0}) {
      expect_exact(logits, columns, run(logits, columns, GetParam(), 1 / temperature),
                   1 / temperature);
    }
  }
}

TEST_P(AdaptiveSoftmaxKernel, StreamsTheSameWhereTheLargestComesLast) {
  // Every block has a larger one, by which all that was summed is scaled down.
  constexpr int64_t kColumns = 5 * kRowBlock + 3;
  auto logits = random_floats(kColumns, 1, 3);
  for (int64_t i = 0; i < kColumns; ++i) {
    const auto block = i / kRowBlock;
    logits[static_cast<size_t>(i)] += 0.8F * static_cast<float>(block);
  }
  expect_exact(logits, kColumns, run(logits, kColumns, GetParam()));
  std::reverse(logits.begin(), logits.end());
  expect_exact(logits, kColumns, run(logits, kColumns, GetParam()));
}

TEST_P(AdaptiveSoftmaxKernel, SurvivesTheLargestLogits) {
  for (const float huge : {1e6F, 1e30F, 3e38F}) {
    for (const int64_t columns : {3, 16, 40, 3000}) {
      auto logits = std::vector<float>(static_cast<size_t>(2 * columns), -huge);
      logits[1] = huge;
      logits.back() = logits[static_cast<size_t>(columns)] = 0;
      const auto found = run(logits, columns, GetParam());
      for (size_t i = 0; i < logits.size(); ++i) {
        const bool is_top = i == 1;
        const bool is_tied = i + 1 == logits.size() || i == static_cast<size_t>(columns);
        EXPECT_EQ(found.result[i], is_top ? 1.0F : is_tied ? 0.5F : 0.0F) << huge << " at " << i;
      }
    }
  }
}

TEST_P(AdaptiveSoftmaxKernel, GivesMaskedLogitsNothing) {
  for (const int64_t columns : {5, 16, 37, 5000}) {
    auto logits = random_floats(40 * columns, 2, 4);
    for (size_t i = 0; i < logits.size(); ++i) {
      if (i * 7919 % 3 == 0) logits[i] = -kInfinity;
    }
    std::fill_n(logits.begin() + columns, columns, -kInfinity);
    const auto found = run(logits, columns, GetParam());
    expect_exact(logits, columns, found);
    for (size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] == -kInfinity) {
        EXPECT_EQ(found.result[i], 0);
      }
    }
    EXPECT_EQ(found.facts.entropy[1], 0);
    EXPECT_EQ(found.facts.beta[1], 1);
    EXPECT_EQ(found.facts.spread[1], 0);
    EXPECT_EQ(found.facts.top_weight[1], 0);
  }
}

TEST_P(AdaptiveSoftmaxKernel, MakesNansOfRowsThatHaveNoMaximum) {
  for (const int64_t columns : {5, 16, 40, 5000}) {
    for (const float bad : {kInfinity, std::nanf(""), -std::nanf("")}) {
      for (const int64_t place : {int64_t{0}, columns / 2, columns - 1}) {
        auto logits = random_floats(3 * columns, 1, 5);
        logits[static_cast<size_t>(columns + place)] = bad;
        const auto found = run(logits, columns, GetParam());
        for (size_t i = 0; i < logits.size(); ++i) {
          const bool is_bad = i / static_cast<size_t>(columns) == 1;
          ASSERT_EQ(std::isnan(found.result[i]), is_bad) << bad << " at " << place;
        }
        for (const auto* fact : {&found.facts.entropy, &found.facts.beta, &found.facts.spread,
                                 &found.facts.top_weight}) {
          EXPECT_TRUE(std::isnan((*fact)[1]));
          EXPECT_FALSE(std::isnan((*fact)[0]) || std::isnan((*fact)[2]));
        }
      }
    }
  }
}

TEST_P(AdaptiveSoftmaxKernel, GivesARowTheSameBitsAloneAndAmongOthers) {
  for (const int64_t columns : {3, 16, 33, 600, 2500}) {
    constexpr int64_t kRows = 70;
    const auto logits = random_floats(kRows * columns, 2, 6);
    const auto together = run(logits, columns, GetParam());
    for (const int64_t row : {0, 1, 17, 69}) {
      const std::vector<float> own(logits.begin() + row * columns,
                                   logits.begin() + (row + 1) * columns);
      const auto alone = run(own, columns, GetParam());
      EXPECT_EQ(std::memcmp(alone.result.data(), together.result.data() + row * columns,
                            own.size() * sizeof(float)),
                0)
          << columns;
      EXPECT_EQ(alone.facts.entropy[0], together.facts.entropy[static_cast<size_t>(row)]);
    }
  }
}

TEST_P(AdaptiveSoftmaxKernel, WritesItsRowsOnlyAndNothingUnlessAskedTo) {
  for (const int64_t columns : {1, 3, 10, 16, 33, 2049}) {
    constexpr int64_t kRows = 40;
    const auto logits = random_floats(kRows * columns, 1, 7);
    std::vector<float> result(logits.size() + 64, kUntouched);
    AdaptiveSoftmaxRows<float> work{.logits = logits.data(),
                                    .rows = kRows,
                                    .columns = columns,
                                    .curve = published_curve(),
                                    .result = result.data()};
    adaptive_softmax_rows(work, 3, 39, GetParam());
    const auto facts = ask_for_all(work);
    adaptive_softmax_rows(work, 3, 39, GetParam());
    for (size_t i = 0; i < result.size(); ++i) {
      const auto row = static_cast<int64_t>(i) / columns;
      EXPECT_EQ(result[i] == kUntouched, row < 3 || row >= 39) << columns << " " << row;
    }
    for (const int64_t row : {2, 39}) {
      EXPECT_EQ(facts.entropy[static_cast<size_t>(row)], kUntouched);
      EXPECT_EQ(facts.spread[static_cast<size_t>(row)], kUntouched);
    }
    EXPECT_NE(facts.entropy[3], kUntouched);
    EXPECT_NE(facts.entropy[38], kUntouched);
  }
}

TEST_P(AdaptiveSoftmaxKernel, RoundsItsResultsInBfloat16) {
  for (const int64_t columns : {3, 16, 33, 256, 2500}) {
    auto logits = random_floats(21 * columns, 2, 9);
    std::vector<Bf16> narrow(logits.size());
    for (size_t i = 0; i < logits.size(); ++i) {
      put(logits[i], narrow[i]);
      logits[i] = number(narrow[i]);
    }
    const auto wide = run(logits, columns, GetParam());
    std::vector<Bf16> result(logits.size() + 1, Bf16{7});
    adaptive_softmax_rows<Bf16>({.logits = narrow.data(),
                                 .rows = 21,
                                 .columns = columns,
                                 .curve = published_curve(),
                                 .result = result.data()},
                                0, 21, GetParam());
    for (size_t i = 0; i < logits.size(); ++i) {
      Bf16 expected;
      put(wide.result[i], expected);
      ASSERT_EQ(result[i].bits, expected.bits) << columns << " at " << i;
    }
    EXPECT_EQ(result.back().bits, 7);
  }
}

TEST_P(AdaptiveSoftmaxKernel, FollowsALineBeyondTheBend) {
  auto curve = published_curve();
  curve.bend = 2;
  curve.at_bend = 1.5;
  curve.slope_beyond = 0.25;
  const std::vector<float> logits(64, 0);
  std::vector<float> result(64), beta(1), slope(1);
  adaptive_softmax_rows<float>({.logits = logits.data(),
                                .rows = 1,
                                .columns = 64,
                                .curve = curve,
                                .result = result.data(),
                                .numbers = {.beta = beta.data(), .slope = slope.data()}},
                               0, 1, GetParam());
  EXPECT_NEAR(beta[0], 1.5 + 0.25 * (std::log(64.0) - 2), 1e-6);
  EXPECT_EQ(slope[0], 0.25F);
}

INSTANTIATE_TEST_SUITE_P(Sets, AdaptiveSoftmaxKernel, testing::ValuesIn(instruction_sets()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace kelvin::adaptive_softmax_test
