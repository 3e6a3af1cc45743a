#include "kelvin/model/weight_names.h"

#include <algorithm>
#include <regex>

namespace kelvin {
namespace {

using Names = std::map<std::string, std::string>;  // stored to ours

// What training scripts put the weights into, beside optimizer and epoch.
const std::vector<std::string> kContainers = {
    "state_dict.", "model_state_dict.", "model_state.", "model.", "network.",
    "net.",        "weights.",          "params."};
// What wraps a network that was trained on several devices or compiled.
const std::vector<std::string> kWrappers = {"module.", "_orig_mod."};

bool any_starts_with(const Names& names, const std::string& prefix) {
  return std::any_of(names.begin(), names.end(),
                     [&](const auto& pair) { return pair.second.starts_with(prefix); });
}

bool all_start_with(const Names& names, const std::string& prefix) {
  return !names.empty() && std::all_of(names.begin(), names.end(), [&](const auto& pair) {
    return pair.second.starts_with(prefix);
  });
}

// Only what starts with the prefix, without it.
Names inside(const Names& names, const std::string& prefix) {
  Names kept;
  for (const auto& [stored, ours] : names) {
    if (ours.starts_with(prefix)) kept[stored] = ours.substr(prefix.size());
  }
  return kept;
}

// What counts something beside the weights: an average what it is of, a profiler operations.
bool is_count(const std::string& name) {
  return name == "n_averaged" || name.ends_with("total_ops") || name.ends_with("total_params");
}

// Wrappers may be in one another, in any order.
Names without_wrappers(Names names) {
  std::erase_if(names, [](const auto& pair) { return is_count(pair.second); });
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    for (const auto& wrapper : kWrappers) {
      if (!all_start_with(names, wrapper)) continue;
      names = inside(names, wrapper);
      is_changed = true;
    }
  }
  return names;
}

Names unwrapped(Names names) {
  // A wrapper may be around a container, and a container in another one.
  constexpr int kDeepest = 4;
  for (int depth = 0; depth < kDeepest; ++depth) {
    for (const auto& container : kContainers) {
      if (any_starts_with(names, container)) names = inside(names, container);
    }
    names = without_wrappers(std::move(names));
  }
  return names;
}

Names kept(const std::set<std::string>& stored) {
  Names names;
  for (const auto& name : stored) names[name] = name;
  return names;
}

Names renamed(const Names& names, const WeightSource& source) {
  Names result = names;
  for (const auto& renaming : source.renamings) {
    const std::regex pattern(renaming.pattern);
    for (auto& [stored, ours] : result) {
      ours = std::regex_replace(ours, pattern, renaming.replacement);
    }
  }
  return result;
}

bool are_distinct(const Names& names) {
  std::set<std::string> ours;
  for (const auto& [stored, name] : names) ours.insert(name);
  return ours.size() == names.size();
}

size_t count_wanted(const Names& names, const std::set<std::string>& wanted) {
  return static_cast<size_t>(std::count_if(
      names.begin(), names.end(), [&](const auto& pair) { return wanted.contains(pair.second); }));
}

bool fits(const Names& names, const std::set<std::string>& wanted,
          const std::set<std::string>& may_lack) {
  std::set<std::string> ours;
  for (const auto& [stored, name] : names) ours.insert(name);
  const bool are_known = std::includes(wanted.begin(), wanted.end(), ours.begin(), ours.end());
  std::set<std::string> needed;
  std::set_difference(wanted.begin(), wanted.end(), may_lack.begin(), may_lack.end(),
                      std::inserter(needed, needed.end()));
  return are_known && ours.size() == names.size() &&
         std::includes(ours.begin(), ours.end(), needed.begin(), needed.end());
}

}  // namespace

const std::vector<WeightSource>& weight_sources() {
  static const std::vector<WeightSource> sources = {
      {.name = "akamaster/pytorch_resnet_cifar10",
       .models = "resnet20, resnet32, resnet44, resnet56",
       .renamings = {{"^linear\\.", "fc."}}},
      {.name = "kuangliu/pytorch-cifar",
       .models = "resnet18, resnet34, resnet50 with the cifar stem",
       .renamings = {{"^linear\\.", "fc."}, {"\\.shortcut\\.", ".downsample."}}},
      {.name = "weiaicunzai/pytorch-cifar100",
       .models = "resnet18, resnet34 with the cifar stem",
       .renamings = {{"^conv1\\.0\\.", "conv1."},
                     {"^conv1\\.1\\.", "bn1."},
                     {"^conv2_x\\.", "layer1."},
                     {"^conv3_x\\.", "layer2."},
                     {"^conv4_x\\.", "layer3."},
                     {"^conv5_x\\.", "layer4."},
                     {"\\.residual_function\\.0\\.", ".conv1."},
                     {"\\.residual_function\\.1\\.", ".bn1."},
                     {"\\.residual_function\\.3\\.", ".conv2."},
                     {"\\.residual_function\\.4\\.", ".bn2."},
                     {"\\.shortcut\\.", ".downsample."}}},
      {.name = "chengyangfu/pytorch-vgg-cifar10",
       .models = "vgg11, vgg16, vgg19 and those with _bn, with the cifar head",
       .renamings = {{"^features\\.module\\.", "features."},
                     {"^classifier\\.1\\.", "classifier.0."},
                     {"^classifier\\.4\\.", "classifier.3."}}},
      {.name = "torchvision's vision transformers",
       .models = "vit_base",
       .renamings = {{"^class_token$", "cls_token"},
                     {"^conv_proj\\.", "patch_embed.proj."},
                     {"^encoder\\.pos_embedding$", "pos_embed"},
                     {"^encoder\\.layers\\.encoder_layer_(\\d+)\\.", "blocks.$1."},
                     {"\\.ln_1\\.", ".norm1."},
                     {"\\.ln_2\\.", ".norm2."},
                     {"\\.self_attention\\.in_proj_", ".attn.qkv."},
                     {"\\.self_attention\\.out_proj\\.", ".attn.proj."},
                     {"\\.mlp\\.(0|linear_1)\\.", ".mlp.fc1."},
                     {"\\.mlp\\.(3|linear_2)\\.", ".mlp.fc2."},
                     {"^encoder\\.ln\\.", "norm."},
                     {"^heads\\.head\\.", "head."}}}};
  return sources;
}

std::map<std::string, std::string> our_names(const std::set<std::string>& stored,
                                             const std::set<std::string>& wanted,
                                             const std::set<std::string>& may_lack,
                                             const std::string& part) {
  auto names = kept(stored);
  if (part.empty() && fits(names, wanted, may_lack)) return names;
  names = part.empty() ? unwrapped(std::move(names)) : unwrapped(inside(names, part + "."));
  if (fits(names, wanted, may_lack)) return names;
  // Those of another network of the same source: still under the names that tell them apart.
  auto nearest = names;
  // Renaming keeps their number.  Without this a file of a stranger could make it take long.
  if (names.size() > 4 * wanted.size()) return nearest;
  for (const auto& source : weight_sources()) {
    auto candidate = renamed(names, source);
    if (fits(candidate, wanted, may_lack)) return candidate;
    if (are_distinct(candidate) &&
        count_wanted(candidate, wanted) > count_wanted(nearest, wanted)) {
      nearest = std::move(candidate);
    }
  }
  return nearest;
}

std::vector<std::string> weight_parts(const std::set<std::string>& stored,
                                      const std::set<std::string>& wanted) {
  std::map<std::string, Names> parts;
  for (const auto& name : stored) {
    const auto dot = name.find('.');
    if (dot != std::string::npos) parts[name.substr(0, dot)][name] = name.substr(dot + 1);
  }
  std::vector<std::string> found;
  for (auto& [part, inner] : parts) {
    const auto names = unwrapped(std::move(inner));
    if (2 * count_wanted(names, wanted) > wanted.size()) found.push_back(part);
  }
  return found;
}

}  // namespace kelvin
