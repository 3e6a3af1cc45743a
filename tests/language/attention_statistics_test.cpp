#include "kelvin/language/attention_statistics.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kelvin/core/files.h"
#include "kelvin/language/decoder_file.h"
#include "kelvin/numerics/dispersion.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/language_files.h"

namespace kelvin::attention_statistics_test {

class Statistics : public testing::Test {
 protected:
  void SetUp() override { write_file_atomically(folder_ / "x.bin", llama2c_bytes()); }

  Decoder decoder() const { return read_decoder(folder_ / "x.bin"); }

  // What the last layer does with two sequences of 12 tokens.
  static std::vector<WatchedAttention> watched(const Decoder& model) {
    std::vector<WatchedAttention> seen;
    const auto tokens = torch::arange(24, torch::kInt64).view({2, 12}) * 11;
    model.logits(tokens, {.watch = [&](const WatchedAttention& layer) { seen.push_back(layer); }});
    return seen;
  }

  TemporaryFolder folder_;
  torch::NoGradGuard no_grad_;
};

TEST_F(Statistics, AreMeansOverTheQueriesThatSeeSoManyKeys) {
  const auto model = decoder();
  AttentionStatistics statistics(model, {1, 5, 9, 40}, /*is_softmax=*/true);
  const auto seen = watched(model);
  for (const auto& layer : seen) statistics.update(layer);
  const auto got = statistics.of(1, 1, 1);
  double spread = 0;
  double largest = 0;
  double entropy = 0;
  double top = 0;
  for (int64_t sequence = 0; sequence < 2; ++sequence) {
    for (int64_t query = 4; query < 8; ++query) {
      double low = 1e30;
      double high = -1e30;
      double most = 0;
      for (int64_t key = 0; key <= query; ++key) {
        const auto score = seen[1].scores[sequence][1][query][key].item<double>();
        const auto weight = seen[1].weights[sequence][1][query][key].item<double>();
        low = std::min(low, score);
        high = std::max(high, score);
        most = std::max(most, weight);
        entropy -= weight > 0 ? weight * std::log(weight) : 0;
      }
      spread += high - low;
      largest = std::max(largest, high - low);
      top += most;
    }
  }
  EXPECT_EQ(got.queries, 8);
  EXPECT_NEAR(got.spread, spread / 8, 1e-6);
  EXPECT_NEAR(got.largest_spread, largest, 1e-6);
  EXPECT_NEAR(got.entropy, entropy / 8, 1e-5);
  EXPECT_NEAR(got.top_weight, top / 8, 1e-6);
  EXPECT_NEAR(got.log_keys, (std::log(5) + std::log(6) + std::log(7) + std::log(8)) / 4, 1e-12);
  EXPECT_EQ(statistics.of(1, 1, 2).queries, 8);
  EXPECT_EQ(statistics.of(0, 0, 0).queries, 8);
}

TEST_F(Statistics, FindNoSoftmaxBeyondTheBoundsOfDispersion) {
  const auto model = decoder();
  AttentionStatistics statistics(model, {1, 40}, /*is_softmax=*/true);
  for (const auto& layer : watched(model)) statistics.update(layer);
  for (int64_t layer = 0; layer < 2; ++layer) {
    for (int64_t head = 0; head < 2; ++head) {
      const auto got = statistics.of(layer, head, 0);
      EXPECT_EQ(got.violations, 0);
      EXPECT_LE(got.spread, got.spread_bound);
      EXPECT_LE(got.largest_part_of_bound, 1);
      EXPECT_LE(got.top_weight, got.top_weight_bound);
      EXPECT_LE(got.entropy, got.log_keys);
    }
  }
}

TEST_F(Statistics, HaveTheSpectralBoundOfEachQuery) {
  const auto model = decoder();
  const auto layer = watched(model)[0];
  AttentionStatistics statistics(model, {12, 13}, /*is_softmax=*/true);
  statistics.update(layer);
  const auto checkpoint = parse_llama2c(read_file(folder_ / "x.bin"), "x.bin");
  const auto weight = [&](const std::string& name) {
    torch::Tensor tensor;
    for (const auto& stored : checkpoint.weights.tensors) {
      if (stored.name != "model.layers.0.self_attn." + name + ".weight") continue;
      tensor = torch::empty(stored.shape, torch::kFloat32);
      std::memcpy(tensor.data_ptr(), stored.bytes.data(), stored.bytes.size());
    }
    return tensor;
  };
  // The second of two heads of four numbers, which share one key head; the last of twelve queries.
  const auto expected = spread_bounds(weight("q_proj").narrow(0, 4, 4), weight("k_proj"),
                                      layer.inputs.select(1, 11), layer.inputs, 0.5);
  EXPECT_NEAR(statistics.of(0, 1, 0).spread_bound, expected.mean().item<double>(),
              1e-5 * expected.mean().item<double>());
}

TEST_F(Statistics, CountSpreadsThatSpectralNormsDoNotAllow) {
  const auto model = decoder();
  AttentionStatistics statistics(model, {1, 40}, /*is_softmax=*/false);
  auto layer = watched(model)[0];
  layer.scores = layer.scores * 1e6;
  statistics.update(layer);
  // The first query of each sequence has one score, which spreads by nothing.
  EXPECT_EQ(statistics.of(0, 0, 0).violations, 2 * 11);
  EXPECT_GT(statistics.of(0, 0, 0).largest_part_of_bound, 1);
}

TEST_F(Statistics, CountWeightsThatNoSoftmaxOfTheScoresHas) {
  const auto model = decoder();
  AttentionStatistics statistics(model, {1, 40}, /*is_softmax=*/true);
  auto layer = watched(model)[0];
  // All weight on the token itself.
  layer.weights = torch::eye(12).expand_as(layer.weights);
  statistics.update(layer);
  // The first query sees one key alone.
  EXPECT_EQ(statistics.of(0, 0, 0).violations, 2 * 11);
}

TEST_F(Statistics, NeedEdgesThatAscend) {
  const auto model = decoder();
  const std::string expected =
      "attention statistics: edges must ascend from 1 or more, and be two or more";
  EXPECT_EQ(error_of([&] { AttentionStatistics(model, {1, 1}, true); }), expected);
  EXPECT_EQ(error_of([&] { AttentionStatistics(model, {0, 4}, true); }), expected);
  EXPECT_EQ(error_of([&] { AttentionStatistics(model, {1}, true); }), expected);
}

}  // namespace kelvin::attention_statistics_test
