#include "kelvin/ops/gelu.h"

#include <torch/csrc/autograd/custom_function.h>

#include "kelvin/core/check.h"
#include "kelvin/kernels/gelu.h"
#include "kelvin/ops/parallel_for.h"
#include "kelvin/ops/reference_ops.h"
#include "kelvin/ops/tensors.h"

namespace kelvin {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Calls work(begin, end, null) on all cores, where the null is a pointer to what `x` is made of.
template <class Work>
void for_numbers(const torch::Tensor& x, const Work& work) {
  constexpr int64_t kGrain = 1 << 14;
  const bool is_bf16 = x.scalar_type() == torch::kBFloat16;
  parallel_for(0, x.numel(), kGrain, [&](int64_t begin, int64_t end) {
    if (is_bf16) {
      work(begin, end, static_cast<Bf16*>(nullptr));
    } else {
      work(begin, end, static_cast<float*>(nullptr));
    }
  });
}

class Gelu : public torch::autograd::Function<Gelu> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x) {
    context->save_for_backward({x});
    auto y = torch::empty_like(x);
    for_numbers(x, [&]<class Number>(int64_t begin, int64_t end, Number*) {
      gelu_numbers<Number>(numbers<Number>(x) + begin, end - begin, numbers<Number>(y) + begin);
    });
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& results) {
    check_first_derivative("one_pass_gelu");
    const auto x = context->get_saved_variables().at(0);
    const auto gradients = results.at(0).to(x.scalar_type()).contiguous();
    auto wanted = torch::empty_like(x);
    for_numbers(x, [&]<class Number>(int64_t begin, int64_t end, Number*) {
      gelu_gradient<Number>(numbers<Number>(x) + begin, numbers<Number>(gradients) + begin,
                            end - begin, numbers<Number>(wanted) + begin);
    });
    return {wanted};
  }
};

}  // namespace

bool suits_one_pass_gelu(const torch::Tensor& x) {
  const auto type = x.scalar_type();
  return has_gelu_kernels() && x.is_cpu() && x.is_contiguous() &&
         (type == torch::kFloat32 || type == torch::kBFloat16);
}

torch::Tensor one_pass_gelu(const torch::Tensor& x) {
  check(suits_one_pass_gelu(x),
        "one_pass_gelu: needs float32 or bfloat16 on a CPU with its vectors, without gaps, got ",
        x.scalar_type(), " of sizes ", x.sizes());
  return Gelu::apply(x);
}

}  // namespace kelvin
