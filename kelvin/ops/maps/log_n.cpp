#include <torch/types.h>

#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/ops/simplex_map.h"

namespace kelvin {
namespace {

// Softmax of logits * ln n / ln n_train, for rows of n logits that are not masked: as at length
// n_train, and sharper at larger ones, where it would spread over all.
SimplexMap make_log_n(Settings& settings) {
  int64_t train_length = 512;
  settings.read("train_length", train_length);
  check(train_length >= 2, settings.full_name("train_length"), ": must be at least 2, got ",
        train_length);
  const double divisor = std::log(static_cast<double>(train_length));
  return simplex_map("log_n", [divisor](const torch::Tensor& logits) {
    return torch::softmax(scaled_logits(logits, unmasked_counts(logits).log() / divisor), -1);
  });
}

const bool log_n_registered = add_simplex_map(
    "log_n", {
                 .summary = "softmax of logits * ln n / ln train_length, over n logits",
                 .reference = "Su, 2021, kexue.fm/archives/8823",
                 .make = make_log_n,
             });

}  // namespace
}  // namespace kelvin
