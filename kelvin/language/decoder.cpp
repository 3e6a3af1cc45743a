#include "kelvin/language/decoder.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/numerics/dispersion.h"

namespace kelvin {
namespace {

// Takes parameters by name, each once.
class Parameters {
 public:
  Parameters(NamedTensors tensors, std::string where)
      : tensors_(std::move(tensors)), where_(std::move(where)) {}

  bool has(const std::string& name) const { return tensors_.contains(name); }

  torch::Tensor take(const std::string& name, const std::vector<int64_t>& sizes) {
    const auto found = tensors_.find(name);
    check(found != tensors_.end(), where_, ": has no ", name);
    const auto tensor = found->second;
    tensors_.erase(found);
    check(tensor.sizes() == torch::IntArrayRef(sizes) && tensor.is_floating_point(), where_, ": ",
          name, " must be floating-point numbers of shape ", shape_text(sizes), ", are ",
          torch::toString(tensor.scalar_type()), " ", tensor.sizes());
    check(torch::isfinite(tensor).all().item<bool>(), where_, ": ", name, " must be finite");
    return tensor.to(torch::kFloat32).contiguous();
  }

  void check_all_taken() const {
    check(tensors_.empty(), where_, ": has ", tensors_.size(), " tensors too many, such as '",
          tensors_.empty() ? "" : shown_text(tensors_.begin()->first), "'");
  }

 private:
  NamedTensors tensors_;
  std::string where_;
};

// Cosines and sines [tokens, head width / 2] of positions from `first` on.
std::pair<torch::Tensor, torch::Tensor> rotation_of(const DecoderShape& shape, int64_t first,
                                                    int64_t tokens) {
  const auto pairs = torch::arange(0, shape.head_width(), 2, torch::kFloat64);
  const auto frequencies =
      torch::pow(shape.rotary_base, -pairs / static_cast<double>(shape.head_width()));
  const auto angles =
      torch::outer(torch::arange(first, first + tokens, torch::kFloat64), frequencies);
  return {angles.cos().to(torch::kFloat32), angles.sin().to(torch::kFloat32)};
}

// Turns each pair of numbers of x [..., tokens, head width] by the angle of its token.
torch::Tensor rotated(const torch::Tensor& x,
                      const std::pair<torch::Tensor, torch::Tensor>& rotation) {
  const auto pairs = x.unflatten(-1, {x.size(-1) / 2, 2});
  const auto even = pairs.select(-1, 0);
  const auto odd = pairs.select(-1, 1);
  const auto& [cosines, sines] = rotation;
  return torch::stack({even * cosines - odd * sines, even * sines + odd * cosines}, -1).flatten(-2);
}

// True where a query sees no key: [queries, keys], of which the queries are the last.
torch::Tensor unseen(int64_t queries, int64_t keys) {
  return torch::ones({queries, keys}, torch::kBool).triu(keys - queries + 1);
}

}  // namespace

Decoder Decoder::from(const DecoderShape& shape, NamedTensors parameters,
                      const std::string& where) {
  Parameters all(std::move(parameters), where);
  Decoder decoder;
  decoder.shape_ = shape;
  const auto w = shape.width;
  const auto h = shape.hidden;
  const auto keys = shape.head_width() * shape.key_heads;
  decoder.embedding_ = all.take("model.embed_tokens.weight", {shape.vocabulary, w});
  for (int64_t i = 0; i < shape.layers; ++i) {
    const auto take = [&](const char* name, const std::vector<int64_t>& sizes) {
      return all.take("model.layers." + std::to_string(i) + "." + name + ".weight", sizes);
    };
    decoder.layers_.push_back({.attention_norm = take("input_layernorm", {w}),
                               .query = take("self_attn.q_proj", {w, w}),
                               .key = take("self_attn.k_proj", {keys, w}),
                               .value = take("self_attn.v_proj", {keys, w}),
                               .output = take("self_attn.o_proj", {w, w}),
                               .feed_norm = take("post_attention_layernorm", {w}),
                               .gate = take("mlp.gate_proj", {h, w}),
                               .up = take("mlp.up_proj", {h, w}),
                               .down = take("mlp.down_proj", {w, h})});
  }
  decoder.last_norm_ = all.take("model.norm.weight", {w});
  decoder.classifier_ = all.has("lm_head.weight")
                            ? all.take("lm_head.weight", {shape.vocabulary, w})
                            : decoder.embedding_;
  all.check_all_taken();
  return decoder;
}

torch::Tensor Decoder::normalised(const torch::Tensor& x, const torch::Tensor& weight) const {
  return x * torch::rsqrt(x.square().mean(-1, /*keepdim=*/true) + shape_.norm_epsilon) * weight;
}

torch::Tensor Decoder::attended(const torch::Tensor& x, int64_t layer, const DecoderPass& pass,
                                const std::pair<torch::Tensor, torch::Tensor>& rotation) const {
  const auto& own = layers_[static_cast<size_t>(layer)];
  const auto in_heads = [&](const torch::Tensor& weight) {
    return torch::linear(x, weight).unflatten(-1, {-1, shape_.head_width()}).transpose(1, 2);
  };
  const auto queries = rotated(in_heads(own.query), rotation);
  auto keys = rotated(in_heads(own.key), rotation);
  auto values = in_heads(own.value);
  if (pass.cache != nullptr) {
    auto& cached_keys = pass.cache->keys[static_cast<size_t>(layer)];
    auto& cached_values = pass.cache->values[static_cast<size_t>(layer)];
    keys = cached_keys = torch::cat({cached_keys, keys}, 2);
    values = cached_values = torch::cat({cached_values, values}, 2);
  }
  if (shape_.key_heads < shape_.heads) {
    keys = keys.repeat_interleave(shape_.heads / shape_.key_heads, 1);
    values = values.repeat_interleave(shape_.heads / shape_.key_heads, 1);
  }
  const auto scores = torch::matmul(queries, keys.transpose(-2, -1)) /
                      std::sqrt(static_cast<double>(shape_.head_width()));
  const auto seen = scores.masked_fill(unseen(queries.size(2), keys.size(2)),
                                       -std::numeric_limits<double>::infinity());
  const auto weights = pass.map ? pass.map(seen) : torch::softmax(seen, -1);
  if (pass.watch) pass.watch({.layer = layer, .inputs = x, .scores = scores, .weights = weights});
  const auto mixed = torch::matmul(weights, values).transpose(1, 2).flatten(2);
  return torch::linear(mixed, own.output);
}

torch::Tensor Decoder::logits(const torch::Tensor& tokens, const DecoderPass& pass) const {
  check(tokens.dim() == 2 && tokens.numel() > 0 && tokens.scalar_type() == torch::kInt64,
        "decoder: tokens must be int64 [sequences, n], got ", tokens.sizes());
  check(tokens.min().item<int64_t>() >= 0 && tokens.max().item<int64_t>() < shape_.vocabulary,
        "decoder: tokens must be from 0 to ", shape_.vocabulary - 1, ", got ",
        tokens.min().item<int64_t>(), " to ", tokens.max().item<int64_t>());
  check(!(pass.watch && pass.cache != nullptr), "decoder: a pass with a cache cannot be watched");
  if (pass.cache != nullptr && pass.cache->keys.empty()) {
    const auto none =
        torch::empty({tokens.size(0), shape_.key_heads, 0, shape_.head_width()}, torch::kFloat32);
    pass.cache->keys.assign(layers_.size(), none);
    pass.cache->values.assign(layers_.size(), none);
  }
  const auto first = pass.cache == nullptr ? 0 : pass.cache->tokens();
  const auto rotation = rotation_of(shape_, first, tokens.size(1));
  auto x = torch::embedding(embedding_, tokens);
  for (int64_t i = 0; i < shape_.layers; ++i) {
    const auto& layer = layers_[static_cast<size_t>(i)];
    x = x + attended(normalised(x, layer.attention_norm), i, pass, rotation);
    const auto h = normalised(x, layer.feed_norm);
    const auto gated = torch::silu(torch::linear(h, layer.gate)) * torch::linear(h, layer.up);
    x = x + torch::linear(gated, layer.down);
  }
  return torch::linear(normalised(x, last_norm_), classifier_);
}

std::vector<double> Decoder::spread_factors(int64_t layer) const {
  const auto& own = layers_.at(static_cast<size_t>(layer));
  const auto width = shape_.head_width();
  std::vector<double> factors;
  for (int64_t head = 0; head < shape_.heads; ++head) {
    const auto key_head = head * shape_.key_heads / shape_.heads;
    factors.push_back(2 * spectral_norm(own.query.narrow(0, head * width, width)) *
                      spectral_norm(own.key.narrow(0, key_head * width, width)) /
                      std::sqrt(static_cast<double>(width)));
  }
  return factors;
}

}  // namespace kelvin
