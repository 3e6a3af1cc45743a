#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/measured.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::attention_rank_test {

Record record_with(std::vector<AttentionRecord> attention) {
  const auto samples = attention.at(0).logits.size(0);
  auto record = record_of(torch::zeros({samples, 2}), torch::zeros({samples}, torch::kInt64));
  record.attention = std::move(attention);
  return record;
}

AttentionRecord softmax_of(const torch::Tensor& logits, int64_t head_width = 0,
                           const std::string& name = "attn") {
  const auto floats = logits.to(torch::kFloat32);
  return {.name = name,
          .logits = floats,
          .weights = torch::softmax(floats, -1),
          .head_width = head_width};
}

struct Shape {
  int64_t queries = 6;
  int64_t keys = 6;
  int64_t head_width = 3;
};

// Queries and keys with biases, as a network makes them.
torch::Tensor products(int64_t samples, int64_t heads, const Shape& shape, uint64_t seed) {
  const auto queries = noise({samples, heads, shape.queries, shape.head_width}, seed) +
                       noise({shape.head_width}, 98);
  const auto keys = noise({samples, heads, shape.keys, shape.head_width}, seed + 1) +
                    noise({shape.head_width}, 99);
  return queries.matmul(keys.transpose(-2, -1));
}

Record some_record(int64_t samples, uint64_t seed) {
  return record_with({softmax_of(products(samples, 2, {}, seed), 3, "first"),
                      softmax_of(0.1 * products(samples, 3, {}, seed + 2), 3, "second")});
}

Record part_of(const Record& record, int64_t begin, int64_t end) {
  auto part = record;
  for (auto& layer : part.attention) {
    layer.logits = layer.logits.slice(0, begin, end);
    layer.weights = layer.weights.slice(0, begin, end);
  }
  return part;
}

// The mean over layers, heads and samples.
Reading network_reading(const Readings& readings, const std::string& name,
                        const Definition& definition = Definition::object()) {
  for (const auto& reading : readings_of(readings, name, definition)) {
    if (reading.layer.empty() && !reading.index) return reading;
  }
  ADD_FAILURE() << "no " << name << " of the network";
  return {};
}

const Definition kShiftFree = {{"shift_free", true}};
const Definition kRaw = {{"shift_free", false}};

TEST(AttentionRank, OfRandomHeadsReachesTheBoundOfWidthAndTokens) {
  struct Case {
    Shape shape;
    int64_t shift_free;
    int64_t raw;
    int64_t shares;
    bool is_bound_by_width;
  };
  const std::vector<Case> cases = {{{9, 9, 4}, 4, 4, 9, true},  {{5, 5, 8}, 4, 5, 5, false},
                                   {{5, 5, 4}, 4, 4, 5, false}, {{9, 9, 1}, 1, 1, 9, true},
                                   {{3, 7, 5}, 3, 3, 3, false}, {{7, 3, 5}, 2, 3, 3, false}};
  for (const auto& [shape, shift_free, raw, shares, is_bound_by_width] : cases) {
    const auto record = record_with({softmax_of(products(4, 2, shape, 1), shape.head_width)});
    const auto readings = measured("attention_rank", {record}, {{"gamma", 1e-6}});
    const auto free = network_reading(readings, "attention_logits_rank", kShiftFree);
    const auto whole = network_reading(readings, "attention_logits_rank", kRaw);
    const auto of_shares = network_reading(readings, "attention_shares_rank");
    EXPECT_EQ(free.definition["upper_bound"], shift_free);
    EXPECT_EQ(free.definition["bound_by_width"], is_bound_by_width);
    EXPECT_EQ(whole.definition["upper_bound"], raw);
    EXPECT_EQ(of_shares.definition["upper_bound"], shares);
    EXPECT_EQ(of_shares.definition["bound_by_width"], false);
    EXPECT_EQ(free.value, shift_free);
    EXPECT_EQ(whole.value, raw);
    EXPECT_LE(of_shares.value, shares);
    EXPECT_TRUE(shape.head_width > 1 || of_shares.value > 1) << "softmax raises the rank";
  }
}

TEST(AttentionRank, KnowsNoBoundOfAWidthThatIsNotKnown) {
  const auto record = record_with({softmax_of(products(4, 2, {9, 9, 4}, 1))});
  const auto reading =
      network_reading(measured("attention_rank", {record}), "attention_logits_rank", kShiftFree);
  EXPECT_EQ(reading.definition["upper_bound"], 8);
  EXPECT_EQ(reading.definition["bound_by_width"], false);
}

TEST(AttentionRank, KnowsEvenAndOneSidedAttention) {
  const auto even = record_with({softmax_of(torch::zeros({2, 1, 5, 5}))});
  auto readings = measured("attention_rank", {even});
  EXPECT_EQ(network_reading(readings, "attention_logits_rank", kShiftFree).value, 0);
  EXPECT_EQ(network_reading(readings, "attention_logits_rank", kRaw).value, 0);
  EXPECT_EQ(network_reading(readings, "attention_shares_rank").value, 1);
  EXPECT_NEAR(network_reading(readings, "attention_entropy").value, 1, 1e-7);

  const auto to_self = record_with({softmax_of(1000 * torch::eye(5).expand({2, 1, 5, 5}))});
  readings = measured("attention_rank", {to_self});
  EXPECT_EQ(network_reading(readings, "attention_logits_rank", kShiftFree).value, 4);
  EXPECT_EQ(network_reading(readings, "attention_logits_rank", kRaw).value, 5);
  EXPECT_EQ(network_reading(readings, "attention_shares_rank").value, 5);
  EXPECT_EQ(network_reading(readings, "attention_entropy").value, 0);
}

TEST(AttentionRank, WithoutShiftsIgnoresAConstantPerQuery) {
  const auto logits = products(4, 2, {9, 9, 3}, 3);
  const auto plain = measured("attention_rank", {record_with({softmax_of(logits)})});
  const auto shifted =
      measured("attention_rank", {record_with({softmax_of(logits + 5 * noise({4, 2, 9, 1}, 4))})});
  EXPECT_EQ(network_reading(shifted, "attention_logits_rank", kShiftFree).value,
            network_reading(plain, "attention_logits_rank", kShiftFree).value);
  EXPECT_EQ(network_reading(shifted, "attention_logits_rank", kRaw).value,
            network_reading(plain, "attention_logits_rank", kRaw).value + 1);
  // A row that is constant leaves exact zeros.
  const auto rows = record_with({softmax_of(noise({4, 2, 9, 1}, 5).expand({4, 2, 9, 9}))});
  EXPECT_EQ(network_reading(measured("attention_rank", {rows}), "attention_logits_rank", kShiftFree)
                .value,
            0);
}

TEST(AttentionRank, AgreesWithNumPyInEveryReading) {
  // Directions fade over four decades, so that gamma cuts somewhere.
  const auto fading = torch::logspace(0, -4, 8, 10, torch::kFloat64);
  const auto logits_of = [&](int64_t heads, uint64_t seed) {
    const auto queries = noise({5, heads, 12, 8}, seed) * fading;
    return 3 * queries.matmul(noise({5, heads, 8, 12}, seed + 1)) +
           noise({5, heads, 12, 1}, seed + 2);
  };
  const auto record = record_with(
      {softmax_of(logits_of(2, 10), 8, "first"), softmax_of(logits_of(3, 20), 8, "second")});
  const auto readings = measured("attention_rank", {record}, {{"gamma", 0.01}});
  const auto expected = oracle(R"(
def rank(m):
    s = np.linalg.svd(m.astype(float), compute_uv=False)
    return np.sum(s > 0.01 * s[..., :1], -1)
for layer in ("first", "second"):
    l, p = x[layer + "/logits"].astype(float), x[layer + "/shares"].astype(float)
    out[layer] = np.stack([rank(l - l.mean(-1, keepdims=True)).mean(0), rank(l).mean(0),
                           rank(p).mean(0),
                           -(p * np.log(p)).sum(-1).mean((0, 2)) / np.log(12)], 1)
)",
                               {{"first/logits", record.attention[0].logits},
                                {"first/shares", record.attention[0].weights},
                                {"second/logits", record.attention[1].logits},
                                {"second/shares", record.attention[1].weights}});
  struct Quantity {
    std::string name;
    Definition definition;
  };
  const std::vector<Quantity> quantities = {{"attention_logits_rank", kShiftFree},
                                            {"attention_logits_rank", kRaw},
                                            {"attention_shares_rank", kRaw},
                                            {"attention_entropy", Definition::object()}};
  for (size_t column = 0; column < quantities.size(); ++column) {
    const auto& [name, definition] = quantities[column];
    const auto of_column = [&](const std::string& layer) {
      return expected.at(layer).select(1, static_cast<int64_t>(column));
    };
    const auto found = readings_of(readings, name, definition);
    ASSERT_EQ(found.size(), 1U + 2U + 5U) << name;
    EXPECT_EQ(found[0].layer, "");
    EXPECT_NEAR(found[0].value,
                (of_column("first").mean() + of_column("second").mean()).item<double>() / 2, 1e-12);
    for (size_t layer = 0; layer < 2; ++layer) {
      EXPECT_EQ(found[1 + layer].layer, record.attention[layer].name);
      EXPECT_FALSE(found[1 + layer].index);
      EXPECT_NEAR(found[1 + layer].value,
                  of_column(record.attention[layer].name).mean().item<double>(), 1e-12);
    }
    for (size_t head = 0; head < 5; ++head) {
      const auto& reading = found[3 + head];
      const auto index = static_cast<int64_t>(head < 2 ? head : head - 2);
      EXPECT_EQ(reading.layer, head < 2 ? "first" : "second");
      EXPECT_EQ(reading.index, index);
      EXPECT_EQ(reading.split, "test");
      EXPECT_NEAR(reading.value, of_column(reading.layer)[index].item<double>(), 1e-12);
    }
  }
  // The cases are not all alike.
  EXPECT_LT(network_reading(readings, "attention_logits_rank", kShiftFree).value, 7);
  EXPECT_GT(network_reading(readings, "attention_shares_rank").value,
            network_reading(readings, "attention_logits_rank", kRaw).value);
}

TEST(AttentionRank, SaysWhatItsNumbersMean) {
  const auto readings = measured("attention_rank", {some_record(5, 30)}, {{"gamma", 0.02}});
  EXPECT_EQ(readings.front().name, "attention_logits_rank");
  EXPECT_EQ(readings.front().definition,
            (Definition{{"matrix", "attention logits over the temperature (query x key)"},
                        {"shift_free", true},
                        {"gamma", 0.02},
                        {"threshold", "gamma * sigma_1"},
                        {"mean_over", "samples, heads and layers"},
                        {"samples", 5},
                        {"which", "the first of the test split"},
                        {"queries", 6},
                        {"keys", 6},
                        {"precision", "float32 forward, float64 SVD"},
                        {"upper_bound", 3},
                        {"bound_by_width", true}}));
  EXPECT_EQ(readings.back().name, "attention_entropy");
  EXPECT_EQ(readings.back().definition["divided_by"], "ln(keys)");
  EXPECT_EQ(readings.back().definition["mean_over"], "samples");
}

TEST(AttentionRank, TakesTheFirstSamplesHoweverTheyAreBatched) {
  const auto whole = some_record(9, 40);
  const Values settings = {{"samples", 5}};
  const auto expected = measured("attention_rank", {part_of(whole, 0, 5)});
  expect_same(measured("attention_rank", {whole}, settings), expected, 1e-12);
  expect_same(measured("attention_rank", {part_of(whole, 0, 3), part_of(whole, 3, 9)}, settings),
              expected, 1e-12);
  expect_same(
      measured("attention_rank", {part_of(whole, 0, 5), part_of(whole, 5, 6), part_of(whole, 6, 9)},
               settings),
      expected, 1e-12);
  // All of them, if they are fewer.
  EXPECT_EQ(measured("attention_rank", {whole}).front().definition["samples"], 9);
}

TEST(AttentionRank, MergesAStreamThatFollows) {
  const auto whole = some_record(20, 50);
  const Values settings = {{"samples", 5}};
  const auto expected = measured("attention_rank", {whole}, settings);
  const auto shown = [&](int64_t begin, int64_t end) {
    auto measure = make_measure("attention_rank", settings);
    if (begin < end) measure->update(part_of(whole, begin, end));
    return measure;
  };
  // The second one is full by itself; the first, full or not, comes first.
  for (const int64_t cut : {0, 2, 5, 8}) {
    SCOPED_TRACE(cut);
    const auto merged = shown(0, cut);
    merged->merge(*shown(cut, 20));
    expect_same(merged->compute(), expected, 1e-12);
    merged->update(part_of(whole, 3, 9));
    expect_same(merged->compute(), expected, 1e-12);
  }
}

TEST(AttentionRank, KeepsWhatEachSampleGave) {
  const auto measure = make_measure("attention_rank");
  measure->update(some_record(4, 60));
  const auto state = measure->state();
  EXPECT_EQ(state.size(), 4U);
  EXPECT_EQ(state.at("first/values").sizes(), (torch::IntArrayRef{4, 2, 4}));
  expect_close(state.at("second/shape"), labels_of({6, 6, 3}), 0);
  EXPECT_NEAR(state.at("second/values").select(2, 2).mean().item<double>(),
              readings_of(measure->compute(), "attention_shares_rank").at(2).value, 1e-12);
}

TEST(AttentionRank, IgnoresTrainingAndOodSamples) {
  auto train = some_record(4, 70);
  train.split = Split::train;
  auto ood = some_record(4, 71);
  ood.ood = "textures";
  const auto test = some_record(4, 72);
  expect_same(measured("attention_rank", {train, test, ood}), measured("attention_rank", {test}));
  EXPECT_EQ(error_of([&] {
              measured("attention_rank", {train, ood});
            }),
            "attention_rank: no records of the test split were shown");
}

TEST(AttentionRank, RejectsAModelWithoutAttention) {
  const auto record = record_of(torch::zeros({3, 2}), labels_of({0, 1, 0}));
  EXPECT_EQ(error_of([&] { measured("attention_rank", {record}); }),
            "attention_rank: the model must have attention layers, such as vit_tiny; it has none");
}

TEST(AttentionRank, RejectsWhatItCannotRank) {
  const auto message_of = [](const AttentionRecord& layer) {
    return error_of([&] { measured("attention_rank", {record_with({layer})}); });
  };
  auto layer = softmax_of(noise({2, 1, 3, 3}, 80));
  layer.logits[1][0][2][1] = std::nan("");
  EXPECT_EQ(message_of(layer),
            "attention_rank: layer 'attn' must be finite, has a NaN or an infinity");
  EXPECT_EQ(message_of(softmax_of(noise({2, 1, 3, 1}, 81))),
            "attention_rank: layer 'attn' must have at least 2 keys, has 1");
  layer = softmax_of(noise({2, 1, 3, 3}, 82));
  layer.weights = layer.weights.slice(3, 0, 2);
  EXPECT_EQ(message_of(layer),
            "attention_rank: layer 'attn' must have logits and weights [samples, heads, queries, "
            "keys], has [2, 1, 3, 3] and [2, 1, 3, 2]");
}

TEST(AttentionRank, RejectsSettingsOutOfRange) {
  EXPECT_EQ(error_of([] {
              make_measure("attention_rank", {{"gamma", 1}});
            }),
            "measure.attention_rank.gamma: must be in (0, 1), got 1");
  EXPECT_EQ(error_of([] {
              make_measure("attention_rank", {{"samples", 0}});
            }),
            "measure.attention_rank.samples: must be at least 1, got 0");
}

}  // namespace kelvin::attention_rank_test
