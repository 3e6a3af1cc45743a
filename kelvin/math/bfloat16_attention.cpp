#include "kelvin/math/bfloat16_attention.h"

#include <torch/csrc/autograd/custom_function.h>

#include "kelvin/core/check.h"
#include "kelvin/math/brain_attention_kernels.h"
#include "kelvin/math/parallel_for.h"
#include "kelvin/math/plain_path.h"
#include "kelvin/math/tensor_numbers.h"

namespace kelvin {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr auto kHeads = "heads";
constexpr auto kFactor = "factor";
constexpr int64_t kParts = 3;  // queries, keys and values

BrainAttentionShape shape_of(const torch::Tensor& qkv, int64_t heads, double factor) {
  return {.samples = qkv.size(0),
          .tokens = qkv.size(1),
          .heads = heads,
          .width = qkv.size(2) / (kParts * heads),
          .factor = static_cast<float>(factor)};
}

class Bfloat16Attention : public torch::autograd::Function<Bfloat16Attention> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& qkv, int64_t heads,
                               double factor) {
    context->save_for_backward({qkv});
    context->saved_data[kHeads] = heads;
    context->saved_data[kFactor] = factor;
    const auto shape = shape_of(qkv, heads, factor);
    auto mixed = torch::empty({shape.samples, shape.tokens, heads * shape.width}, qkv.options());
    parallel_for(0, shape.samples * heads, 1, [&](int64_t begin, int64_t end) {
      brain_attention(shape, numbers(qkv), begin, end, numbers(mixed));
    });
    return mixed;
  }

  static variable_list backward(AutogradContext* context, const variable_list& results) {
    check_first_derivative("bfloat16_attention");
    const auto qkv = context->get_saved_variables().at(0);
    const auto shape =
        shape_of(qkv, context->saved_data[kHeads].toInt(), context->saved_data[kFactor].toDouble());
    const auto gradients = results.at(0).to(torch::kBFloat16).contiguous();
    auto wanted = torch::empty_like(qkv);
    parallel_for(0, shape.samples * shape.heads, 1, [&](int64_t begin, int64_t end) {
      brain_attention_back(shape, numbers(qkv), numbers(gradients), begin, end, numbers(wanted));
    });
    return {wanted, torch::Tensor(), torch::Tensor()};
  }
};

}  // namespace

bool suits_bfloat16_attention(const torch::Tensor& qkv, int64_t heads) {
  return has_brain_attention() && qkv.is_cpu() && qkv.scalar_type() == torch::kBFloat16 &&
         qkv.dim() == 3 && qkv.is_contiguous() && qkv.numel() > 0 && heads >= 1 &&
         qkv.size(2) % (kParts * heads * kBrainAttentionUnit) == 0 &&
         qkv.size(1) <= kBrainAttentionTokens;
}

torch::Tensor bfloat16_attention(const torch::Tensor& qkv, int64_t heads, double factor) {
  check(
      suits_bfloat16_attention(qkv, heads),
      "bfloat16_attention: needs bfloat16 [samples, tokens, 3 * heads * width] with a width that ",
      "is a multiple of ", kBrainAttentionUnit, " and at most ", kBrainAttentionTokens,
      " tokens, got ", qkv.sizes(), " for ", heads, " heads");
  return Bfloat16Attention::apply(qkv, heads, factor);
}

}  // namespace kelvin
