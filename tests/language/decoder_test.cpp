#include "kelvin/language/decoder.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>

#include "kelvin/core/files.h"
#include "kelvin/language/decoder_file.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/language_files.h"
#include "tests/support/python.h"
#include "tests/support/real_data.h"

namespace kelvin::decoder_test {

// The forward pass of a checkpoint of llama2.c in float64, token by token as run.c has it: writes
// logits [n, vocabulary] as raw float64.
constexpr auto kOracle = R"(
import sys, struct, numpy as np
raw = open(sys.argv[1], 'rb').read()
d, hidden, layers, heads, kv, vocab, context = struct.unpack('7i', raw[:28])
rest = np.frombuffer(raw[28:], np.float32).astype(np.float64)
own, vocab, hd = vocab < 0, abs(vocab), d // heads
at = 0
def take(*shape):
    global at
    n = int(np.prod(shape)); at += n
    return rest[at - n:at].reshape(shape)
emb, an = take(vocab, d), take(layers, d)
wq, wk, wv, wo = take(layers, d, d), take(layers, kv * hd, d), take(layers, kv * hd, d), take(layers, d, d)
fn, w1, w2, w3 = take(layers, d), take(layers, hidden, d), take(layers, d, hidden), take(layers, hidden, d)
last = take(d); take(context, hd)
cls = take(vocab, d) if own else emb
norm = lambda x, w: x / np.sqrt((x * x).mean() + 1e-5) * w
tokens = [int(t) for t in sys.argv[3].split(',')]
keys = [[] for _ in range(layers)]; values = [[] for _ in range(layers)]; out = []
for place, token in enumerate(tokens):
    x = emb[token].copy()
    for l in range(layers):
        h = norm(x, an[l]); q, k, v = wq[l] @ h, wk[l] @ h, wv[l] @ h
        for vec in (q, k):
            for i in range(0, len(vec), 2):
                a = place * 10000.0 ** (-(i % hd) / hd)
                c, s, y0, y1 = np.cos(a), np.sin(a), vec[i], vec[i + 1]
                vec[i], vec[i + 1] = y0 * c - y1 * s, y0 * s + y1 * c
        keys[l].append(k); values[l].append(v)
        mixed = np.zeros(d)
        for head in range(heads):
            part = slice(head * hd, (head + 1) * hd); g = head * kv // heads
            theirs = slice(g * hd, (g + 1) * hd)
            scores = np.array([q[part] @ kk[theirs] for kk in keys[l]]) / np.sqrt(hd)
            w = np.exp(scores - scores.max()); w /= w.sum()
            mixed[part] = sum(a * vv[theirs] for a, vv in zip(w, values[l]))
        x = x + wo[l] @ mixed
        h = norm(x, fn[l]); a, b = w1[l] @ h, w3[l] @ h
        x = x + w2[l] @ (a / (1 + np.exp(-a)) * b)
    out.append(cls @ norm(x, last))
np.array(out).tofile(sys.argv[2])
)";

torch::Tensor oracle_logits(const std::string& checkpoint, const std::vector<int64_t>& tokens) {
  const TemporaryFolder folder;
  std::string list;
  for (const auto token : tokens) list += (list.empty() ? "" : ",") + std::to_string(token);
  python_output(kOracle, {checkpoint, folder / "logits", list});
  const auto bytes = read_file(folder / "logits");
  const auto count = static_cast<int64_t>(bytes.size() / sizeof(double));
  auto numbers = torch::empty({count}, torch::kFloat64);
  std::memcpy(numbers.data_ptr(), bytes.data(), bytes.size());
  return numbers.view({static_cast<int64_t>(tokens.size()), -1});
}

torch::Tensor row_of(const std::vector<int64_t>& tokens) {
  return torch::tensor(tokens, torch::kInt64).unsqueeze(0);
}

class SmallDecoder : public testing::Test {
 protected:
  Decoder decoder(const Llama2cHeader& header = {}) {
    write_file_atomically(path(), llama2c_bytes(header));
    return read_decoder(path());
  }
  std::string path() const { return folder_ / "x.bin"; }

  const std::vector<int64_t> tokens_ = {1, 17, 250, 17, 3, 299, 0, 8};
  TemporaryFolder folder_;
  torch::NoGradGuard no_grad_;
};

TEST_F(SmallDecoder, EqualsAForwardPassInNumpy) {
  for (const auto& header : {Llama2cHeader{}, Llama2cHeader{.key_heads = 2, .vocabulary = -300}}) {
    const auto logits = decoder(header).logits(row_of(tokens_))[0].to(torch::kFloat64);
    EXPECT_TRUE(logits.allclose(oracle_logits(path(), tokens_), 1e-4, 1e-4));
  }
}

TEST_F(SmallDecoder, GivesTheSameTokenByTokenWithACache) {
  const auto model = decoder();
  const auto whole = model.logits(row_of(tokens_));
  KeyValueCache cache;
  model.logits(row_of({tokens_.begin(), tokens_.begin() + 3}), {.cache = &cache});
  for (size_t i = 3; i < tokens_.size(); ++i) {
    const auto next = model.logits(row_of({tokens_[i]}), {.cache = &cache});
    EXPECT_TRUE(next[0][0].allclose(whole[0][static_cast<int64_t>(i)], 1e-5, 1e-5)) << i;
  }
  EXPECT_EQ(cache.tokens(), 8);
}

// What comes later is not seen: a mask is as good as a shorter text.
TEST_F(SmallDecoder, TellsATokenByThoseBeforeItAlone) {
  const auto model = decoder();
  const auto whole = model.logits(row_of(tokens_));
  const auto shorter = model.logits(row_of({tokens_.begin(), tokens_.begin() + 5}));
  EXPECT_TRUE(shorter.allclose(whole.narrow(1, 0, 5), 1e-5, 1e-5));
}

TEST_F(SmallDecoder, LetsEachLayerBeWatchedAndItsMapBeReplaced) {
  const auto model = decoder();
  std::vector<WatchedAttention> seen;
  const auto watch = [&](const WatchedAttention& layer) { seen.push_back(layer); };
  const auto half = [](const torch::Tensor& scores) { return torch::softmax(scores / 2, -1); };
  model.logits(row_of(tokens_), {.map = half, .watch = watch});
  ASSERT_EQ(seen.size(), 2U);
  const auto unseen = torch::ones({8, 8}, torch::kBool).triu(1);
  const auto expected = torch::softmax(seen[1].scores.masked_fill(unseen, -1e30) / 2, -1);
  EXPECT_TRUE(seen[1].weights.allclose(expected, 1e-5, 1e-6));
  EXPECT_EQ(seen[0].inputs.sizes(), (std::vector<int64_t>{1, 8, 8}));
}

TEST_F(SmallDecoder, RefusesTokensThatItDoesNotKnow) {
  const auto model = decoder();
  EXPECT_EQ(error_of([&] {
              model.logits(row_of({1, 300}));
            }),
            "decoder: tokens must be from 0 to 299, got 1 to 300");
  EXPECT_EQ(error_of([&] { model.logits(torch::zeros({3}, torch::kInt64)); }),
            "decoder: tokens must be int64 [sequences, n], got [3]");
  KeyValueCache cache;
  const auto ignore = [](const WatchedAttention&) {};
  EXPECT_EQ(error_of([&] { model.logits(row_of({1}), {.watch = ignore, .cache = &cache}); }),
            "decoder: a pass with a cache cannot be watched");
}

TEST_F(SmallDecoder, RefusesWeightsThatAreNotFinite) {
  auto bytes = llama2c_bytes();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bytes.data() + 28, &nan, sizeof(nan));
  write_file_atomically(path(), bytes);
  EXPECT_EQ(error_of([&] { read_decoder(path()); }),
            path() + ": model.embed_tokens.weight must be finite");
}

class Stories : public RealData {};

TEST_F(Stories, EqualAForwardPassInNumpy) {
  const torch::NoGradGuard no_grad;
  const auto path = data_folder() / "language" / "stories15M.bin";
  const std::vector<int64_t> tokens = {1, 9038, 2501, 263, 931, 29892, 727, 471, 263, 2217};
  const auto logits = read_decoder(path).logits(row_of(tokens))[0].to(torch::kFloat64);
  const auto expected = oracle_logits(path, tokens);
  EXPECT_LT((logits - expected).abs().max().item<double>(), 1e-4);
}

}  // namespace kelvin::decoder_test
