#include "kelvin/model/weights.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
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
  // Who averages or casts a state dict casts the counters of normalisation too.
  const bool is_known = tensor.scalar_type() == wanted.scalar_type() ||
                        name.ends_with("num_batches_tracked") ||
                        (wanted.is_floating_point() && tensor.is_floating_point());
  check(is_known, where, ": '", name, "' must be ", torch::toString(wanted.scalar_type()), ", is ",
        torch::toString(tensor.scalar_type()));
  const bool is_position = name.ends_with("pos_embed") && grid_side(tensor) > 0 &&
                           grid_side(wanted) > 0 && tensor.size(2) == wanted.size(2);
  if (is_position && tensor.sizes() != wanted.sizes()) {
    tensor = interpolated(tensor.to(torch::kFloat32), grid_side(wanted));
  }
  check(tensor.sizes() == wanted.sizes(), where, ": '", name, "' must be ", wanted.sizes(), ", is ",
        tensor.sizes(), is_head ? "; --reset-head leaves it out and draws a new head" : "");
  check(!tensor.is_floating_point() || torch::isfinite(tensor).all().item<bool>(), where, ": '",
        name, "' must be finite, holds NaN or infinity");
  // float64 is rounded, as PyTorch's own loading does.
  tensor = tensor.to(wanted.scalar_type());
  check(!tensor.is_floating_point() || torch::isfinite(tensor).all().item<bool>(), where, ": '",
        name, "' must fit ", torch::toString(wanted.scalar_type()), ", holds a number beyond it");
  return tensor;
}

// "'a', 'b', 'c' and 4 more".
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 3;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    shown.push_back("'" + shown_text(names[i]) + "'");
  }
  const auto text = join(shown, ", ");
  if (names.size() <= kShown) return text;
  return text + " and " + std::to_string(names.size() - kShown) + " more";
}

// How many blocks each part has that is numbered: {"layer1", 9} for names to layer1.8.bn2.bias.
std::map<std::string, int64_t> blocks_in(const std::set<std::string>& names) {
  std::map<std::string, std::set<std::string>> numbers;
  for (const auto& name : names) {
    const auto parts = split(name, '.');
    if (parts.size() < 3 || parts[1].empty()) continue;
    const bool is_number = std::all_of(parts[1].begin(), parts[1].end(),
                                       [](char letter) { return letter >= '0' && letter <= '9'; });
    if (is_number) numbers[parts[0]].insert(parts[1]);
  }
  std::map<std::string, int64_t> blocks;
  for (const auto& [part, each] : numbers) blocks[part] = static_cast<int64_t>(each.size());
  return blocks;
}

// "; layer1 has 9 blocks where the model has 7, ..." of a network of another depth.
std::string other_depth(const std::set<std::string>& ours, const std::set<std::string>& wanted) {
  const auto there = blocks_in(ours);
  std::vector<std::string> parts;
  for (const auto& [part, count] : blocks_in(wanted)) {
    const auto found = there.find(part);
    if (found == there.end() || found->second == count) continue;
    parts.push_back(part + " has " + std::to_string(found->second) +
                    " blocks where the model has " + std::to_string(count));
  }
  return parts.empty() ? "are these weights of another architecture?" : join(parts, ", ");
}

// Whose names are not the model's own: says so in a way that tells architectures apart.
void check_names(const std::set<std::string>& ours, const std::set<std::string>& wanted,
                 const std::set<std::string>& may_lack, const std::string& where) {
  std::vector<std::string> missing;
  for (const auto& name : wanted) {
    if (!ours.contains(name) && !may_lack.contains(name)) missing.push_back(name);
  }
  std::vector<std::string> extra;
  std::set_difference(ours.begin(), ours.end(), wanted.begin(), wanted.end(),
                      std::back_inserter(extra));
  if (missing.empty() && extra.empty()) return;
  const auto tensors = [](const std::vector<std::string>& names) {
    return std::to_string(names.size()) + (names.size() == 1 ? " tensor" : " tensors");
  };
  std::string what;
  if (!extra.empty()) {
    what = "has " + tensors(extra) + " that the model has not (" + some_of(extra) + ")";
  }
  if (!missing.empty()) {
    what += (what.empty() ? "has not " : ", and has not ") + tensors(missing) +
            " that the model needs (" + some_of(missing) + ")";
  }
  check(false, where, ": ", what, "; ", other_depth(ours, wanted));
}

// Which of several copies in the file is taken; empty if there is but one.
std::string choice_of(const std::set<std::string>& stored, const std::set<std::string>& wanted,
                      const std::map<std::string, std::string>& taken, const std::string& where) {
  const auto parts = weight_parts(stored, wanted);
  if (parts.size() < 2 || taken.empty()) return "";
  const auto& any = taken.begin()->first;
  const auto own = any.substr(0, any.find('.'));
  std::vector<std::string> others;
  for (const auto& part : parts) {
    if (part != own) others.push_back("'" + shown_text(part) + "'");
  }
  return where + ": the weights taken are those of '" + shown_text(own) + "'; it also holds " +
         join(others, ", ") + ", which init.pretrained_part would take";
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

std::string load_weights(const std::filesystem::path& path, Model& model,
                         const LoadOptions& options) {
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
  const auto names = our_names(names_of(stored), names_of(wanted), may_lack, options.part);
  check(options.part.empty() || !names.empty(), where, ": has no '", shown_text(options.part),
        "'; init.pretrained_part must be a part of the file that holds tensors");
  for (const auto& [stored_name, name] : names) ours.insert(name);
  check_names(ours, names_of(wanted), may_lack, where);
  for (const auto& [stored_name, name] : names) {
    if (options.reset_head && head.contains(name)) continue;
    fitting[name] =
        fitted(stored.at(stored_name), wanted.at(name), name, where, head.contains(name));
  }
  for (const auto& [name, tensor] : fitting) wanted.at(name).copy_(tensor);
  return choice_of(names_of(stored), names_of(wanted), names, where);
}

}  // namespace kelvin
