#include "kelvin/retrieval/network.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/numerics/dispersion.h"
#include "kelvin/ops/attention.h"
#include "kelvin/ops/gelu.h"
#include "kelvin/ops/reference_ops.h"

namespace kelvin {
namespace {

struct NamedShape {
  std::string name;
  std::vector<int64_t> sizes;
};

std::vector<NamedShape> parameter_shapes(const RetrievalShape& shape) {
  const auto w = shape.width;
  std::vector<NamedShape> all;
  const auto layer = [&](const std::string& name, int64_t inputs, int64_t outputs) {
    all.push_back({name + ".weight", {outputs, inputs}});
    all.push_back({name + ".bias", {outputs}});
  };
  layer("psi_x.0", 1 + shape.classes, w);
  layer("psi_x.2", w, w);
  layer("psi_q.0", 1, w);
  layer("psi_q.2", w, w);
  for (const char* name : {"query.weight", "key.weight", "value.weight"}) {
    all.push_back({name, {w, w}});
  }
  layer("phi.0", w, w);
  layer("phi.2", w, shape.classes);
  return all;
}

torch::Tensor gelu_of_items(const torch::Tensor& x) {
  return !uses_reference_ops() && suits_one_pass_gelu(x) ? one_pass_gelu(x) : torch::gelu(x);
}

// [sets, rows, terms] by [sets, terms, columns].
torch::Tensor products_of_sets(const torch::Tensor& left, const torch::Tensor& right) {
  const auto matrices = left.unsqueeze(1);
  const auto factors = right.unsqueeze(1);
  if (!uses_reference_ops() && suits_batched_product(matrices, factors)) {
    return batched_product(matrices, factors).squeeze(1);
  }
  return torch::bmm(left, right);
}

}  // namespace

RetrievalNetwork::RetrievalNetwork(const RetrievalShape& shape, uint64_t seed) : shape_(shape) {
  check(shape.width >= 1 && shape.width <= 4096,
        "retrieval network: width must be from 1 to 4096, "
        "got ",
        shape.width);
  check(shape.classes >= 2 && shape.classes <= 1000,
        "retrieval network: classes must be from 2 to 1000, got ", shape.classes);
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  double limit = 0;  // a bias has that of the weight before it
  for (const auto& [name, sizes] : parameter_shapes(shape)) {
    if (sizes.size() == 2) limit = 1 / std::sqrt(static_cast<double>(sizes[1]));
    auto drawn = torch::empty(sizes, torch::kFloat32).uniform_(-limit, limit, generator);
    parameters_.emplace_back(name, drawn.set_requires_grad(true));
  }
}

RetrievalNetwork RetrievalNetwork::from(const NamedTensors& parameters, const std::string& where) {
  const auto first = parameters.find("psi_x.0.weight");
  const auto last = parameters.find("phi.2.weight");
  check(first != parameters.end() && last != parameters.end(), where,
        ": is no network for max retrieval (it has no psi_x.0.weight or no phi.2.weight)");
  check(first->second.dim() == 2 && last->second.dim() == 2, where,
        ": psi_x.0.weight and phi.2.weight must be matrices");
  RetrievalNetwork network({.width = first->second.size(0), .classes = last->second.size(0)});
  for (const auto& [name, sizes] : parameter_shapes(network.shape_)) {
    const auto found = parameters.find(name);
    check(found != parameters.end(), where, ": has no ", name);
    const auto& tensor = found->second;
    check(tensor.sizes() == torch::IntArrayRef(sizes) && tensor.is_floating_point(), where, ": ",
          name, " must be numbers of shape ", shape_text(sizes), ", is ", tensor.sizes());
    check(torch::isfinite(tensor).all().item<bool>(), where, ": ", name, " must be finite");
    network.parameters_.emplace_back(name, tensor.to(torch::kFloat32).contiguous());
  }
  check(parameters.size() == network.parameters_.size(), where, ": has ", parameters.size(),
        " tensors instead of ", network.parameters_.size());
  return network;
}

const torch::Tensor& RetrievalNetwork::at(const char* name) const {
  const auto found = std::find_if(parameters_.begin(), parameters_.end(),
                                  [&](const auto& each) { return each.first == name; });
  assert(found != parameters_.end());
  return found->second;
}

torch::Tensor RetrievalNetwork::two_layers(const std::string& name, const torch::Tensor& x) const {
  const auto part = [&](const char* suffix) -> const torch::Tensor& {
    return at((name + suffix).c_str());
  };
  const auto h = gelu_of_items(torch::linear(x, part(".0.weight"), part(".0.bias")));
  return torch::linear(h, part(".2.weight"), part(".2.bias"));
}

torch::Tensor RetrievalNetwork::hidden(const RetrievalSets& sets) const {
  const auto count = sets.priorities.numel();
  auto items = torch::zeros({count, 1 + shape_.classes}, torch::kFloat32);
  items.select(1, 0).copy_(sets.priorities.reshape({count}));
  items.scatter_(1, sets.classes.reshape({count, 1}) + 1, 1);
  const auto h = gelu_of_items(torch::linear(items, at("psi_x.0.weight"), at("psi_x.0.bias")));
  return h.view({sets.priorities.size(0), sets.priorities.size(1), shape_.width});
}

torch::Tensor RetrievalNetwork::scores(const torch::Tensor& hidden,
                                       const RetrievalSets& sets) const {
  const auto y = two_layers("psi_q", sets.queries.unsqueeze(1));
  const auto k = y.matmul(at("query.weight").t()).matmul(at("key.weight"));
  const auto direction = k.matmul(at("psi_x.2.weight"));
  const auto constant = k.matmul(at("psi_x.2.bias"));
  const auto products = products_of_sets(hidden, direction.unsqueeze(2)).squeeze(2);
  auto scaled = (products + constant.unsqueeze(1)) / std::sqrt(static_cast<double>(shape_.width));
  const auto is_masked = sets.is_masked();
  if (!is_masked.defined()) return scaled;
  return scaled.masked_fill(is_masked, -std::numeric_limits<double>::infinity());
}

torch::Tensor RetrievalNetwork::logits(const torch::Tensor& hidden,
                                       const torch::Tensor& weights) const {
  const auto mixed = products_of_sets(weights.unsqueeze(1), hidden).squeeze(1);
  const auto totals = weights.sum(1, /*keepdim=*/true);
  const auto items = mixed.matmul(at("psi_x.2.weight").t()) + totals * at("psi_x.2.bias");
  return two_layers("phi", items.matmul(at("value.weight").t()));
}

RetrievalAnswer RetrievalNetwork::answer(const RetrievalSets& sets, const ScoreMap& map) const {
  RetrievalAnswer result;
  const auto h = hidden(sets);
  result.scores = scores(h, sets);
  result.weights = map(result.scores);
  result.logits = logits(h, result.weights);
  return result;
}

torch::Tensor RetrievalNetwork::score_spread_bounds(const torch::Tensor& hidden,
                                                    const RetrievalSets& sets) const {
  const auto y = two_layers("psi_q", sets.queries.unsqueeze(1));
  auto items = torch::linear(hidden, at("psi_x.2.weight"), at("psi_x.2.bias"));
  const auto is_masked = sets.is_masked();
  if (is_masked.defined()) items = items.masked_fill(is_masked.unsqueeze(2), 0);
  return spread_bounds(at("query.weight"), at("key.weight"), y, items,
                       1 / std::sqrt(static_cast<double>(shape_.width)));
}

}  // namespace kelvin
