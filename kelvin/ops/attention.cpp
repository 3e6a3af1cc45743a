#include "kelvin/ops/attention.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/kernels/bf16_attention.h"
#include "kelvin/ops/parallel_for.h"
#include "kelvin/ops/reference_ops.h"
#include "kelvin/ops/tensors.h"

// Of whatever BLAS LibTorch is linked to.
extern "C" void blas_product(const char* transposes_first, const char* transposes_second,
                             const int* rows, const int* columns, const int* terms,
                             const float* alpha, const float* first, const int* first_step,
                             const float* second, const int* second_step, const float* beta,
                             float* result, const int* result_step) __asm__("sgemm_")
    __attribute__((weak));

namespace kelvin {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr auto kFactor = "factor";

// One of them stride 1, the other without overlap.
bool is_readable(const torch::Tensor& tensor) {
  const auto rows = tensor.size(2);
  const auto columns = tensor.size(3);
  return (tensor.stride(3) == 1 && tensor.stride(2) >= std::max<int64_t>(columns, 1)) ||
         (tensor.stride(2) == 1 && tensor.stride(3) >= std::max<int64_t>(rows, 1));
}

bool is_float_batch(const torch::Tensor& tensor) {
  return tensor.is_cpu() && tensor.scalar_type() == torch::kFloat32 && tensor.dim() == 4 &&
         tensor.numel() > 0;
}

torch::Tensor readable(const torch::Tensor& tensor) {
  // Not contiguous(): that leaves what is spread over one element as it is.
  return is_readable(tensor) ? tensor : tensor.clone(torch::MemoryFormat::Contiguous);
}

// How a BLAS, for which columns lie together, sees the matrices of a tensor: transposed, or as they
// are.
struct Matrices {
  explicit Matrices(const torch::Tensor& tensor)
      : data(tensor.data_ptr<float>()),
        sample_step(tensor.stride(0)),
        head_step(tensor.stride(1)),
        has_rows(tensor.stride(3) == 1 && tensor.stride(2) >= tensor.size(3)),
        step(static_cast<int>(has_rows ? tensor.stride(2) : tensor.stride(3))) {}

  const float* at(int64_t sample, int64_t head) const {
    return data + sample * sample_step + head * head_step;
  }
  // Of the transposed matrix.
  const char* transposition() const { return has_rows ? "N" : "T"; }

  const float* data;
  int64_t sample_step;
  int64_t head_step;
  bool has_rows;  // whether the numbers of a row lie together
  int step;
};

// result = factor * left right; rows of the result lie together.
void multiply(const torch::Tensor& left, const torch::Tensor& right, double factor,
              const torch::Tensor& result) {
  const Matrices first(left);
  const Matrices second(right);
  const auto heads = left.size(1);
  const auto count = left.size(0) * heads;
  const auto rows = static_cast<int>(left.size(2));
  const auto terms = static_cast<int>(left.size(3));
  const auto columns = static_cast<int>(right.size(3));
  const auto alpha = static_cast<float>(factor);
  const float beta = 0;
  const auto result_step = static_cast<int>(result.stride(2));
  auto* to = result.data_ptr<float>();
  const auto parts = std::min<int64_t>(at::get_num_threads(), count);
  parallel_for_tasks(parts, [&](int64_t part) {
    for (auto i = part * count / parts; i < (part + 1) * count / parts; ++i) {
      const auto sample = i / heads;
      const auto head = i % heads;
      // Rows that lie together are columns of the transposed: right^T left^T.
      blas_product(second.transposition(), first.transposition(), &columns, &rows, &terms, &alpha,
                   second.at(sample, head), &second.step, first.at(sample, head), &first.step,
                   &beta, to + sample * result.stride(0) + head * result.stride(1), &result_step);
    }
  });
}

torch::Tensor empty_result(const torch::Tensor& left, const torch::Tensor& right,
                           ProductOrder order) {
  const auto samples = left.size(0);
  const auto heads = left.size(1);
  const auto rows = left.size(2);
  const auto columns = right.size(3);
  if (order == ProductOrder::matrices) {
    return torch::empty({samples, heads, rows, columns}, left.options());
  }
  return torch::empty({samples, rows, heads, columns}, left.options()).transpose(1, 2);
}

torch::Tensor product_of(const torch::Tensor& left, const torch::Tensor& right, double factor,
                         ProductOrder order) {
  auto result = empty_result(left, right, order);
  multiply(left, right, factor, result);
  return result;
}

class BatchedProduct : public torch::autograd::Function<BatchedProduct> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& left,
                               const torch::Tensor& right, double factor, bool by_rows) {
    context->save_for_backward({left, right});
    context->saved_data[kFactor] = factor;
    return product_of(left, right, factor, by_rows ? ProductOrder::rows : ProductOrder::matrices);
  }

  static variable_list backward(AutogradContext* context, const variable_list& results) {
    check_first_derivative("batched_product");
    const auto saved = context->get_saved_variables();
    const auto& left = saved.at(0);
    const auto& right = saved.at(1);
    const double factor = context->saved_data[kFactor].toDouble();
    const auto gradient = readable(results.at(0));
    variable_list wanted(4);
    if (context->needs_input_grad(0)) {
      wanted[0] = product_of(gradient, right.transpose(2, 3), factor, ProductOrder::matrices);
    }
    if (context->needs_input_grad(1)) {
      wanted[1] = product_of(left.transpose(2, 3), gradient, factor, ProductOrder::matrices);
    }
    return wanted;
  }
};

}  // namespace

bool suits_batched_product(const torch::Tensor& left, const torch::Tensor& right) {
  return blas_product != nullptr && is_float_batch(left) && is_float_batch(right) &&
         left.size(0) == right.size(0) && left.size(1) == right.size(1) &&
         left.size(3) == right.size(2) && is_readable(left) && is_readable(right);
}

torch::Tensor batched_product(const torch::Tensor& left, const torch::Tensor& right, double factor,
                              ProductOrder order) {
  check(suits_batched_product(left, right),
        "batched_product: needs float32 matrices [samples, heads, rows, terms] and [samples, "
        "heads, terms, columns] on a CPU, got ",
        left.sizes(), " and ", right.sizes());
  return BatchedProduct::apply(left, right, factor, order == ProductOrder::rows);
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr auto kHeads = "heads";
constexpr int64_t kParts = 3;  // queries, keys and values

Bf16AttentionShape shape_of(const torch::Tensor& qkv, int64_t heads, double factor) {
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
      bf16_attention(shape, numbers(qkv), begin, end, numbers(mixed));
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
      bf16_attention_back(shape, numbers(qkv), numbers(gradients), begin, end, numbers(wanted));
    });
    return {wanted, torch::Tensor(), torch::Tensor()};
  }
};

}  // namespace

bool suits_bfloat16_attention(const torch::Tensor& qkv, int64_t heads) {
  return has_bf16_attention() && qkv.is_cpu() && qkv.scalar_type() == torch::kBFloat16 &&
         qkv.dim() == 3 && qkv.is_contiguous() && qkv.numel() > 0 && heads >= 1 &&
         qkv.size(2) % (kParts * heads * kBf16AttentionUnit) == 0 &&
         qkv.size(1) <= kBf16AttentionTokens;
}

torch::Tensor bfloat16_attention(const torch::Tensor& qkv, int64_t heads, double factor) {
  check(
      suits_bfloat16_attention(qkv, heads),
      "bfloat16_attention: needs bfloat16 [samples, tokens, 3 * heads * width] with a width that ",
      "is a multiple of ", kBf16AttentionUnit, " and at most ", kBf16AttentionTokens,
      " tokens, got ", qkv.sizes(), " for ", heads, " heads");
  return Bfloat16Attention::apply(qkv, heads, factor);
}

}  // namespace kelvin
