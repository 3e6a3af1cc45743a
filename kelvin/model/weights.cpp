#include "kelvin/model/weights.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "kelvin/core/check.h"
#include "kelvin/core/shown_text.h"
#include "kelvin/model/head.h"
#include "kelvin/model/tensors_file.h"
#include "kelvin/model/weight_names.h"

namespace kelvin {
namespace {

std::set<std::string> names_of(const NamedTensors& tensors) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) names.insert(name);
  return names;
}

// Counts of batches: files of before they existed, and those of most converters, have none.
bool is_counter(const std::string& name) { return name.ends_with("num_batches_tracked"); }

std::set<std::string> head_names(Model& model, const NamedTensors& tensors) {
  check(model.head() != nullptr, "load_weights: this model does not tell what its head is");
  const auto parts = model.head()->tensors();
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    const auto is_part = [&part = tensor](const torch::Tensor& each) { return each.is_same(part); };
    if (std::any_of(parts.begin(), parts.end(), is_part)) names.insert(name);
  }
  return names;
}

// The side of a square grid of tokens behind one class token; 0 if they are none.
int64_t grid_side(const torch::Tensor& embeddings) {
  if (embeddings.dim() != 3 || embeddings.size(0) != 1 || embeddings.size(1) < 2) return 0;
  const auto side = std::llround(std::sqrt(static_cast<double>(embeddings.size(1) - 1)));
  return side * side == embeddings.size(1) - 1 ? side : 0;
}

// Position embeddings for another number of patches, bicubically; the class token's stays.
torch::Tensor interpolated(const torch::Tensor& embeddings, int64_t side) {
  const auto old_side = grid_side(embeddings);
  const auto width = embeddings.size(2);
  const auto grid = embeddings.slice(1, 1).reshape({1, old_side, old_side, width});
  const auto resized = torch::upsample_bicubic2d(grid.permute({0, 3, 1, 2}), {side, side},
                                                 /*align_corners=*/false);
  return torch::cat(
      {embeddings.slice(1, 0, 1), resized.permute({0, 2, 3, 1}).reshape({1, side * side, width})},
      1);
}

// What of the file goes into the model's tensor `name`.
torch::Tensor fitted(const torch::Tensor& stored, const torch::Tensor& wanted,
                     const std::string& name, const std::string& where, bool is_head) {
  auto tensor = stored;
  const bool is_lossless = tensor.scalar_type() == wanted.scalar_type() ||
                           (wanted.is_floating_point() && tensor.is_floating_point() &&
                            tensor.element_size() < wanted.element_size());
  check(is_lossless, where, ": '", name, "' must be ", torch::toString(wanted.scalar_type()),
        ", is ", torch::toString(tensor.scalar_type()));
  const bool is_position = name.ends_with("pos_embed") && grid_side(tensor) > 0 &&
                           grid_side(wanted) > 0 && tensor.size(2) == wanted.size(2);
  if (is_position && tensor.sizes() != wanted.sizes()) {
    tensor = interpolated(tensor.to(torch::kFloat32), grid_side(wanted));
  }
  check(tensor.sizes() == wanted.sizes(), where, ": '", name, "' must be ", wanted.sizes(), ", is ",
        tensor.sizes(), is_head ? "; --reset-head leaves it out and draws a new head" : "");
  check(!tensor.is_floating_point() || torch::isfinite(tensor).all().item<bool>(), where, ": '",
        name, "' must be finite, holds NaN or infinity");
  return tensor;
}

// Whose names are not the model's own: says so in a way that tells architectures apart.
void check_names(const std::set<std::string>& ours, const std::set<std::string>& wanted,
                 const std::set<std::string>& may_lack, const std::string& where) {
  for (const auto& name : wanted) {
    check(ours.contains(name) || may_lack.contains(name), where, ": has no tensor '", name,
          "', which the model needs; are these weights of another architecture?");
  }
  for (const auto& name : ours) {
    check(wanted.contains(name), where, ": the model has no tensor '", shown_text(name),
          "'; are these weights of another architecture?");
  }
}

}  // namespace

NamedTensors weights_of(const Model& model) {
  NamedTensors tensors;
  for (const auto& item : model.named_parameters()) tensors[item.key()] = item.value();
  for (const auto& item : model.named_buffers()) tensors[item.key()] = item.value();
  return tensors;
}

void copy_weights(const NamedTensors& from, NamedTensors& to, const std::string& where) {
  torch::NoGradGuard no_grad;
  check(names_of(from) == names_of(to), where, ": has other tensors than it must have");
  for (const auto& [name, tensor] : from) {
    const auto& wanted = to.at(name);
    check(tensor.sizes() == wanted.sizes() && tensor.scalar_type() == wanted.scalar_type(), where,
          ": '", name, "' must be ", wanted.scalar_type(), " of ", wanted.sizes(), ", is ",
          tensor.scalar_type(), " of ", tensor.sizes());
  }
  for (const auto& [name, tensor] : from) to.at(name).copy_(tensor);
}

void save_weights(const std::filesystem::path& path, const Model& model) {
  write_safetensors(path, weights_of(model));
}

void load_weights(const std::filesystem::path& path, Model& model, const LoadOptions& options) {
  torch::NoGradGuard no_grad;
  const auto where = path.string();
  const auto stored = read_tensors(path);
  const auto wanted = weights_of(model);
  const auto head = model.head() == nullptr ? std::set<std::string>() : head_names(model, wanted);
  std::set<std::string> may_lack;
  for (const auto& [name, tensor] : wanted) {
    if (is_counter(name) || (options.reset_head && head.contains(name))) may_lack.insert(name);
  }

  NamedTensors fitting;
  std::set<std::string> ours;
  const auto names = our_names(names_of(stored), names_of(wanted), may_lack);
  for (const auto& [stored_name, name] : names) ours.insert(name);
  check_names(ours, names_of(wanted), may_lack, where);
  for (const auto& [stored_name, name] : names) {
    if (options.reset_head && head.contains(name)) continue;
    fitting[name] =
        fitted(stored.at(stored_name), wanted.at(name), name, where, head.contains(name));
  }
  for (const auto& [name, tensor] : fitting) wanted.at(name).copy_(tensor);
}

}  // namespace kelvin
