#pragma once

#include <torch/types.h>

#include <functional>
#include <string>

#include "kelvin/core/registry.h"
#include "kelvin/core/settings.h"

namespace kelvin {

// Logits [..., n] over a temperature above 0 to weights of the same shape and type: over the last
// dimension they are not negative and sum to 1, or to at most what the entry says.  A logit of -inf
// is masked: its weight is exactly 0, and the others are as if it were not there; a row of nothing
// else is all zeros.
using SimplexMap = std::function<torch::Tensor(const torch::Tensor& logits, double temperature)>;

// The same with its temperature, as a head with scores [..., n] wants it.
using ScoreMap = std::function<torch::Tensor(const torch::Tensor& scores)>;

// What computes attention with a map in one pass, without the matrix of weights in memory.
enum class OnePassAttention { none, softmax };

struct SimplexMapEntry {
  std::string summary;
  std::string reference;
  std::function<SimplexMap(Settings&)> make;
  // Whether every row with a logit sums to 1.  If not, the weights are no distribution, and a
  // constant added to all logits changes them.
  bool sums_to_one = true;
  OnePassAttention one_pass = OnePassAttention::none;
  std::string operator_name = {};  // in torch.ops.kelvin, unless it is the map's own name
};

Registry<SimplexMapEntry>& simplex_maps();

// Adds a map to them, and its operator to PyTorch's.  True, for a namespace-scope constant.
bool add_simplex_map(const std::string& name, const SimplexMapEntry& entry);

// Throws unless these are logits [..., n] with n at least 1; `name` opens the message.
void check_logits(const std::string& name, const torch::Tensor& logits);

using SimplexRule = std::function<torch::Tensor(const torch::Tensor& logits)>;

// Whether a constant that is added to all logits of a row changes nothing.
enum class Constants { ignored, felt };

// The map that `rule` is where it is defined: rows with a finite logit, in single precision or
// better, at a temperature of 1.  `name` opens messages.
SimplexMap simplex_map(const std::string& name, const SimplexRule& rule,
                       Constants constants = Constants::ignored);

// How many logits of each row are not masked: [..., 1], of the logits' type.
torch::Tensor unmasked_counts(const torch::Tensor& logits);

// (logits - the largest) * factors of [..., 1], as differentiable maps that ignore a constant want
// them: masked ones stay masked even if the factor is 0.
torch::Tensor scaled_logits(const torch::Tensor& logits, const torch::Tensor& factors);

}  // namespace kelvin
