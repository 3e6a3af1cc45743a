#include "kelvin/model/attention.h"

#include <torch/torch.h>

#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/model/layers.h"
#include "kelvin/ops/attention.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {

using torch::nn::Linear;
using torch::nn::LinearOptions;

void read_attention(Settings& settings, AttentionOptions& options) {
  std::string name = "softmax";
  settings.read("attention", name);
  const auto& entry = simplex_maps().find(name);
  settings.read_prefixed("attention_", [&](Settings& own) { options.map = entry.make(own); });
  options.one_pass = entry.one_pass;
  settings.read("attention_temperature", options.temperature);
  check_temperature(settings.full_name("attention_temperature").c_str(), options.temperature);
}

Attention::Attention(const AttentionOptions& options)
    : options_(options),
      qkv_(LinearOptions(options.width, 3 * options.width).bias(options.bias)),
      projection_(LinearOptions(options.width, options.width).bias(options.bias)),
      dropout_(options.dropout) {
  check(options.heads >= 1 && options.width >= 1 && options.width % options.heads == 0,
        "attention: heads must divide the width ", options.width, ", are ", options.heads);
  check_temperature("attention", options.temperature);
  check(static_cast<bool>(options.map), "attention: needs a map to the simplex, has none");
  register_module("qkv", qkv_);
  register_module("proj", projection_);
  register_module("proj_drop", dropout_);
}

torch::Tensor Attention::forward(const torch::Tensor& tokens, const torch::Tensor& residual,
                                 const std::string& name, Taps* taps) {
  const auto qkv = product_of(qkv_, tokens);
  if (taps) taps->record(layer_record(name + ".qkv", qkv_, tokens, qkv, qkv));
  const auto mixed = mixed_values(qkv, name, taps).narrow(1, 0, residual.size(1));
  const auto pre_activation = product_of(projection_, mixed);
  const auto added = dropout_(pre_activation);
  auto output = residual_sum(residual, added);
  if (taps) {
    taps->record(residual_record(
        layer_record(name + ".proj", projection_, mixed, pre_activation, output), added));
  }
  return output;
}

torch::Tensor Attention::mixed_values(const torch::Tensor& qkv, const std::string& name,
                                      Taps* taps) const {
  const auto samples = qkv.size(0);
  const auto tokens = qkv.size(1);
  const auto head_width = options_.width / options_.heads;
  const double divisor = std::sqrt(static_cast<double>(head_width)) * options_.temperature;
  if (!taps && options_.one_pass == OnePassAttention::softmax &&
      suits_one_pass_attention(qkv, options_.heads)) {
    return bfloat16_attention(qkv, options_.heads, 1 / divisor);
  }
  // Queries, keys and values, each [samples, heads, tokens, head width].
  const auto parts =
      qkv.view({samples, tokens, 3, options_.heads, head_width}).permute({2, 0, 3, 1, 4}).unbind(0);
  const auto logits =
      product_of(parts[0], parts[1].transpose(-2, -1), 1 / divisor, ProductOrder::matrices);
  const auto weights = options_.map(logits, /*temperature=*/1);
  if (taps) {
    taps->record({.name = name, .logits = logits, .weights = weights, .head_width = head_width},
                 2 * logits.numel() * head_width);
  }
  return product_of(weights, parts[2], 1, ProductOrder::rows)
      .transpose(1, 2)
      .reshape({samples, tokens, options_.width});
}

}  // namespace kelvin
