#include "kelvin/ops/entmax.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/ops/operators.h"
#include "kelvin/ops/reference_ops.h"
#include "kelvin/ops/simplex_map.h"

namespace kelvin {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows of double precision whose largest is 0.  The threshold is between two that make the sum too
// large and too small; Newton's steps narrow that, and halving where those leave it or are slow,
// which they may be for alpha above 2, where the sum is not convex in the threshold.
torch::Tensor entmax_shares(const torch::Tensor& distances, double alpha) {
  constexpr int kMostSteps = 200;
  constexpr double kRounding = 0x1p-50;
  const double power = 1 / (alpha - 1);
  // What is 1 or more below the largest gets nothing.
  const auto z = ((alpha - 1) * distances).clamp_min(-1);
  auto low = torch::full_like(z.narrow(-1, 0, 1), -1);
  auto high = torch::full_like(low, -std::pow(static_cast<double>(z.size(-1)), 1 - alpha));
  auto threshold = low;
  torch::Tensor shares;
  for (int step = 0; step < kMostSteps; ++step) {
    const auto above = torch::relu(z - threshold);
    shares = above.pow(power);
    const auto excess = shares.sum(-1, /*keepdim=*/true) - 1;
    // A row that is done stays as it is: its bits must not depend on the rows beside it.
    const auto is_done =
        ((excess.abs() > kRounding) & (high - low > kRounding * low.abs())).logical_not();
    if (is_done.all().item<bool>()) break;
    low = torch::where(excess >= 0, threshold, low);
    high = torch::where(excess < 0, threshold, high);
    const auto slopes = power * torch::where(above > 0, above.pow(power - 1), 0 * above);
    const auto newton = threshold + excess / slopes.sum(-1, /*keepdim=*/true);
    const auto halves = (low + high) / 2;
    const bool must_halve = step % 4 == 3;
    const auto next =
        must_halve ? halves : torch::where((newton > low) & (newton < high), newton, halves);
    threshold = torch::where(is_done, threshold, next);
  }
  return shares / shares.sum(-1, /*keepdim=*/true);
}

TORCH_LIBRARY_FRAGMENT(kelvin, library) {
  library.def("_entmax_shares(Tensor distances, float alpha) -> Tensor");
  library.impl("_entmax_shares",
               torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, entmax_shares));
  library.impl("_entmax_shares",
               torch::dispatch(c10::DispatchKey::Meta, [](const torch::Tensor& distances, double) {
                 return torch::empty_like(distances);
               }));
}

class AlphaEntmax : public torch::autograd::Function<AlphaEntmax> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& logits,
                               double alpha) {
    static const RegisteredKernel<torch::Tensor(const torch::Tensor&, double)> shares_operator(
        "kelvin::_entmax_shares");
    const auto numbers = logits.to(torch::kFloat64);
    const auto shares = shares_operator(numbers - numbers.amax(-1, /*keepdim=*/true), alpha);
    context->save_for_backward({shares});
    context->saved_data["alpha"] = alpha;
    return shares.to(logits.scalar_type());
  }

  // With s = p^(2 - alpha) on the support the Jacobian is diag(s) - s s^T / sum s.
  static variable_list backward(AutogradContext* context, const variable_list& results) {
    check_first_derivative("alpha_entmax");
    const auto shares = context->get_saved_variables().at(0);
    const auto incoming = results.at(0).to(torch::kFloat64);
    const auto powers = shares.pow(2 - context->saved_data["alpha"].toDouble());
    const auto slopes = torch::where(shares > 0, powers, 0 * shares);
    const auto mean =
        (slopes * incoming).sum(-1, /*keepdim=*/true) / slopes.sum(-1, /*keepdim=*/true);
    return {(slopes * (incoming - mean)).to(results.at(0).scalar_type()), torch::Tensor()};
  }
};

}  // namespace

void check_alpha(const char* where, double alpha) {
  check(std::isfinite(alpha) && alpha > 1, where,
        ": must be a finite number above 1 (softmax is the limit at 1), got ", alpha);
}

torch::Tensor alpha_entmax(const torch::Tensor& logits, double alpha) {
  check_alpha("alpha_entmax: alpha", alpha);
  check_logits("alpha_entmax", logits);
  return AlphaEntmax::apply(logits, alpha);
}

}  // namespace kelvin
