#include "kelvin/model/attention.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>

#include "tests/support/errors.h"
#include "tests/support/gradients.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::attention_test {

constexpr int64_t kWidth = 12;
constexpr int64_t kHeads = 3;

AttentionOptions options_from(const Values& values) {
  AttentionOptions options{.width = kWidth, .heads = kHeads};
  Settings settings("model", values);
  read_attention(settings, options);
  settings.reject_unknown_keys();
  return options;
}

// Double precision, parameters large enough for attention weights that differ.
std::shared_ptr<Attention> attention_of(const AttentionOptions& options) {
  torch::NoGradGuard no_grad;
  auto attention = std::make_shared<Attention>(options);
  attention->to(torch::kFloat64);
  uint64_t seed = 100;
  for (auto& parameter : attention->parameters()) {
    parameter.copy_(0.5 * noise(parameter.sizes().vec(), seed++));
  }
  return attention;
}

std::shared_ptr<Attention> attention_of(const Values& values = {}) {
  return attention_of(options_from(values));
}

struct Seen {
  torch::Tensor output;
  Taps taps;
};

Seen seen(Attention& attention, const torch::Tensor& tokens, const torch::Tensor& residual) {
  torch::NoGradGuard no_grad;
  Seen result;
  result.output = attention.forward(tokens, residual, "attn", &result.taps);
  return result;
}

const torch::Tensor kTokens = noise({2, 7, kWidth}, 1);
const torch::Tensor kResidual = noise({2, 7, kWidth}, 2);

TEST(Attention, AgreesWithNumPyHeadByHead) {
  const auto attention = attention_of();
  const auto result = seen(*attention, kTokens, kResidual);
  NamedTensors inputs = {{"tokens", kTokens}, {"residual", kResidual}};
  for (const auto& item : attention->named_parameters()) inputs[item.key()] = item.value().detach();
  const auto expected = oracle(R"(
qkv = x["tokens"] @ x["qkv.weight"].T + x["qkv.bias"]
logits, weights, mixed = [], [], []
for head in range(3):
    q, k, v = (qkv[..., 12 * i + 4 * head:12 * i + 4 * head + 4] for i in range(3))
    logits.append(q @ k.transpose(0, 2, 1) / 2)
    e = np.exp(logits[-1])
    weights.append(e / e.sum(-1, keepdims=True))
    mixed.append(weights[-1] @ v)
out["logits"] = np.stack(logits, 1)
out["weights"] = np.stack(weights, 1)
out["output"] = x["residual"] + np.concatenate(mixed, -1) @ x["proj.weight"].T + x["proj.bias"]
)",
                               inputs);
  expect_close(result.output, expected.at("output"), 1e-12);
  ASSERT_EQ(result.taps.attention().size(), 1U);
  const auto& record = result.taps.attention()[0];
  EXPECT_EQ(record.name, "attn");
  EXPECT_EQ(record.head_width, 4);
  expect_close(record.logits, expected.at("logits"), 1e-12);
  expect_close(record.weights, expected.at("weights"), 1e-12);
  EXPECT_GT(record.weights.max().item<double>(), 0.8) << "attention is flat";
}

TEST(Attention, GivesTheSameBitsWithTapsAndWithout) {
  torch::NoGradGuard no_grad;
  for (const char* map : {"softmax", "sparsemax", "entmax15", "top_k"}) {
    const auto attention = attention_of({{"attention", map}});
    EXPECT_TRUE(attention->forward(kTokens, kResidual, "attn", nullptr)
                    .equal(seen(*attention, kTokens, kResidual).output))
        << map;
  }
}

TEST(Attention, HasRowsThatSumToOne) {
  for (const char* map : {"softmax", "sparsemax", "entmax15", "top_k"}) {
    const auto attention = attention_of({{"attention", map}});
    const auto weights = seen(*attention, kTokens, kResidual).taps.attention()[0].weights;
    ASSERT_EQ(weights.sizes(), (torch::IntArrayRef{2, kHeads, 7, 7}));
    expect_close(weights.sum(-1), torch::ones({2, kHeads, 7}), 1e-14);
  }
}

TEST(Attention, UsesTheMapOfItsSettings) {
  const auto zeros = [](const Values& values) {
    const auto result = seen(*attention_of(values), kTokens, kResidual);
    return (result.taps.attention()[0].weights == 0).sum(-1);
  };
  EXPECT_EQ(zeros({}).max().item<int64_t>(), 0);
  EXPECT_GT(zeros({{"attention", "sparsemax"}}).to(torch::kFloat64).mean().item<double>(), 1);
  expect_close(zeros({{"attention", "top_k"}, {"attention_k", 2}}), torch::full({2, kHeads, 7}, 5),
               0);
}

TEST(Attention, DividesItsLogitsByTheTemperature) {
  torch::NoGradGuard no_grad;
  constexpr double kTemperature = 2.5;
  const auto warm = attention_of({{"attention_temperature", kTemperature}});
  const auto scaled = attention_of();
  // The first third of the rows makes queries.
  for (auto& item : scaled->named_parameters()) {
    if (item.key().starts_with("qkv")) item.value().narrow(0, 0, kWidth).div_(kTemperature);
  }
  const auto result = seen(*warm, kTokens, kResidual);
  const auto expected = seen(*scaled, kTokens, kResidual);
  expect_close(result.output, expected.output, 1e-13);
  expect_close(result.taps.attention()[0].logits, expected.taps.attention()[0].logits, 1e-13);
  expect_close(result.taps.attention()[0].logits,
               seen(*attention_of(), kTokens, kResidual).taps.attention()[0].logits / kTemperature,
               1e-13);
}

TEST(Attention, ForgetsTheOrderOfTokens) {
  const auto attention = attention_of();
  const auto order = labels_of({3, 0, 6, 1, 5, 2, 4});
  const auto plain = seen(*attention, kTokens, kResidual).output;
  const auto shuffled =
      seen(*attention, kTokens.index_select(1, order), kResidual.index_select(1, order)).output;
  expect_close(shuffled, plain.index_select(1, order), 1e-13);
}

TEST(Attention, TapsItsLinearMaps) {
  const auto attention = attention_of();
  const auto result = seen(*attention, kTokens, kResidual);
  const auto& layers = result.taps.layers();
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[0].name, "attn.qkv");
  EXPECT_TRUE(layers[0].input.equal(kTokens));
  EXPECT_TRUE(layers[0].output.is_same(layers[0].pre_activation));
  EXPECT_EQ(layers[1].name, "attn.proj");
  EXPECT_TRUE(layers[1].output.equal(result.output));
  expect_close(layers[1].pre_activation, result.output - kResidual, 1e-13);
  expect_close(layers[1].input.matmul(layers[1].weight.t()) + layers[1].bias,
               layers[1].pre_activation, 1e-13);
}

TEST(Attention, CountsItsLinearMapsAndItsTwoProducts) {
  const auto result = seen(*attention_of(), kTokens, kResidual);
  EXPECT_EQ(result.taps.macs(), 2 * (7 * 4 * kWidth * kWidth + 2 * 7 * 7 * kWidth));
}

TEST(Attention, HasTheGradientOfCentralDifferences) {
  for (const char* map : {"softmax", "sparsemax", "entmax15", "top_k"}) {
    SCOPED_TRACE(map);
    const auto attention = attention_of({{"attention", map}});
    expect_gradient(
        [&](const torch::Tensor& tokens) {
          return attention->forward(tokens, tokens, "attn", nullptr);
        },
        noise({1, 4, kWidth}, 3));
  }
}

TEST(Attention, LeavesOutBiasesIfToldSo) {
  auto options = options_from({});
  options.bias = false;
  const Attention attention(options);
  EXPECT_EQ(attention.parameters().size(), 2U);
  EXPECT_TRUE(attention.named_parameters().contains("qkv.weight"));
  EXPECT_TRUE(attention.named_parameters().contains("proj.weight"));
}

TEST(Attention, DropsPartsOfItsProjectionInTrainingOnly) {
  auto options = options_from({});
  options.dropout = 0.5;
  const auto attention = attention_of(options);
  torch::manual_seed(0);
  const auto added = seen(*attention, kTokens, torch::zeros_like(kTokens)).output;
  const double dropped = (added == 0).to(torch::kFloat64).mean().item<double>();
  EXPECT_NEAR(dropped, 0.5, 0.15);
  attention->eval();
  EXPECT_FALSE(
      (seen(*attention, kTokens, torch::zeros_like(kTokens)).output == 0).any().item<bool>());
}

TEST(Attention, RejectsSettingsOutOfRange) {
  EXPECT_EQ(error_of([] {
              options_from({{"attention_temperature", 0}});
            }),
            "model.attention_temperature: temperature must be a finite number above 0, got 0");
  EXPECT_EQ(error_of([] {
              options_from({{"attention", "top_k"}, {"attention_k", 0}});
            }),
            "model.attention_k: must be at least 1, got 0");
  EXPECT_TRUE(error_of([] {
                options_from({{"attention", "sparsmax"}});
              }).starts_with("no softmax named 'sparsmax'; did you mean 'sparsemax'?"));
  // Only the map that has the setting takes it.
  EXPECT_TRUE(error_of([] {
                options_from({{"attention_k", 3}});
              }).starts_with("model.attention_k: no such setting"));
}

TEST(Attention, RejectsOptionsThatDoNotFit) {
  const auto message_of = [](const AttentionOptions& options) {
    return error_of([&] { Attention attention(options); });
  };
  auto options = options_from({});
  options.heads = 5;
  EXPECT_EQ(message_of(options), "attention: heads must divide the width 12, are 5");
  options = options_from({});
  options.temperature = -1;
  EXPECT_EQ(message_of(options), "attention: temperature must be a finite number above 0, got -1");
  EXPECT_EQ(message_of({.width = 4, .heads = 2}),
            "attention: needs a map to the simplex, has none");
}

}  // namespace kelvin::attention_test
