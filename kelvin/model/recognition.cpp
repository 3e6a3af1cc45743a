#include "kelvin/model/recognition.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/model/head.h"
#include "kelvin/model/model.h"
#include "kelvin/model/weight_names.h"
#include "kelvin/model/weights.h"

namespace kelvin {
namespace {

// The file's tensors under a model's own names.
NamedTensors renamed(const NamedTensors& stored, const NamedTensors& wanted) {
  std::set<std::string> stored_names;
  std::set<std::string> wanted_names;
  std::set<std::string> counters;
  for (const auto& [name, tensor] : stored) stored_names.insert(name);
  for (const auto& [name, tensor] : wanted) {
    wanted_names.insert(name);
    if (name.ends_with("num_batches_tracked")) counters.insert(name);
  }
  NamedTensors ours;
  for (const auto& [name, own] : our_names(stored_names, wanted_names, counters)) {
    ours[own] = stored.at(name);
  }
  return ours;
}

bool is_counter(const std::string& name) { return name.ends_with("num_batches_tracked"); }

bool have_same_names(const NamedTensors& ours, const NamedTensors& wanted) {
  const auto is_wanted = [&](const auto& item) { return wanted.contains(item.first); };
  const auto is_there = [&](const auto& item) {
    return is_counter(item.first) || ours.contains(item.first);
  };
  return std::all_of(ours.begin(), ours.end(), is_wanted) &&
         std::all_of(wanted.begin(), wanted.end(), is_there);
}

bool have_same_shapes(const NamedTensors& ours, const NamedTensors& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& item) {
    const auto found = ours.find(item.first);
    return found == ours.end() || found->second.sizes() == item.second.sizes();
  });
}

// What a file says of the images, whatever the architecture.
ModelShape shape_in(const NamedTensors& stored) {
  ModelShape shape;
  int64_t patch = 0;
  int64_t inputs = 0;
  for (const auto& [name, tensor] : stored) {
    if (tensor.numel() == 0) continue;  // whose sizes may be anything
    const bool is_first = name.ends_with("patch_embed.proj.weight") ||
                          name.ends_with("conv1.weight") || name.ends_with("features.0.weight");
    if (tensor.dim() == 4 && is_first && tensor.size(1) <= 4) shape.channels = tensor.size(1);
    if (tensor.dim() == 4 && name.ends_with("patch_embed.proj.weight")) patch = tensor.size(2);
    if (tensor.dim() == 2 && name.ends_with(".0.weight")) inputs = tensor.size(1);
  }
  for (const auto& [name, tensor] : stored) {
    if (patch == 0 || !name.ends_with("pos_embed") || tensor.dim() != 3) continue;
    if (tensor.numel() == 0 || tensor.size(1) < 2) continue;
    const auto side = std::llround(std::sqrt(static_cast<double>(tensor.size(1) - 1)));
    shape.height = shape.width = patch * side;
  }
  const bool has_maps = std::any_of(stored.begin(), stored.end(),
                                    [](const auto& item) { return item.second.dim() == 4; });
  if (!has_maps && inputs > 0) shape = {.channels = 1, .height = 1, .width = inputs};
  return shape;
}

// How many numbered parts there are at the same place, such as the blocks of a transformer.
int64_t numbered_parts(const NamedTensors& stored) {
  std::map<std::string, std::set<int64_t>> numbers;
  for (const auto& [name, tensor] : stored) {
    if (tensor.dim() < 2) continue;
    std::string before;
    for (const auto& part : split(name, '.')) {
      const bool is_number = !part.empty() && part.size() < 5 &&
                             part.find_first_not_of("0123456789") == std::string::npos;
      if (is_number) {
        numbers[before].insert(std::stoll(part));
        break;
      }
      before += part + ".";
    }
  }
  size_t most = 0;
  for (const auto& [before, each] : numbers) most = std::max(most, each.size());
  return static_cast<int64_t>(most);
}

// The usual settings of a model of this shape; none if it cannot have that shape.
std::optional<Values> usual_settings(const ModelEntry& entry, const ModelShape& shape) {
  try {
    Settings settings("model", {});
    entry.read(shape, settings);
    return settings.resolved();
  } catch (const Error&) {
    return std::nullopt;
  }
}

// What may be otherwise and shows in names or shapes.
std::vector<Values> variants(const Values& usual, const NamedTensors& stored) {
  std::vector<Values> all = {{}};
  const auto vary = [&](const std::string& key, const std::vector<Value>& values) {
    if (!usual.contains(key)) return;
    std::vector<Values> more;
    for (const auto& each : all) {
      for (const auto& value : values) {
        auto variant = each;
        if (usual.at(key) != value) variant[key] = value;
        more.push_back(variant);
      }
    }
    all = more;
  };
  vary("bias", {true, false});
  vary("shortcut", {"A", "B"});
  vary("stem", {"cifar", "imagenet"});
  vary("depth", {numbered_parts(stored)});
  for (const auto& [name, tensor] : stored) {
    if (tensor.dim() == 4 && name.ends_with("patch_embed.proj.weight")) {
      vary("patch", {tensor.size(2)});
    }
  }
  return all;
}

std::shared_ptr<Model> built(const ModelEntry& entry, const ModelShape& shape,
                             const Values& values) {
  try {
    Settings settings("model", values);
    return entry.build(shape, settings);
  } catch (const Error&) {
    return nullptr;  // a combination that cannot be
  }
}

// A narrow network tells the names, and how its classifier's inputs grow with the width.
std::optional<Values> width_of(const ModelEntry& entry, const ModelShape& shape,
                               const Values& usual, Values values, const NamedTensors& stored) {
  if (!usual.contains("width")) return values;
  const bool is_whole = usual.at("width").is_number_integer();
  const double narrow = is_whole ? 8 : 0.125;
  values["width"] = is_whole ? Value(8) : Value(narrow);
  const auto model = built(entry, shape, values);
  if (!model || model->head() == nullptr) return std::nullopt;
  const auto wanted = weights_of(*model);
  const auto ours = renamed(stored, wanted);
  if (!have_same_names(ours, wanted)) return std::nullopt;
  for (const auto& [name, tensor] : wanted) {
    if (!tensor.is_same(model->head()->linear()->weight)) continue;
    if (ours.at(name).dim() != 2) return std::nullopt;
    const double width =
        narrow * static_cast<double>(ours.at(name).size(1)) / static_cast<double>(tensor.size(1));
    values["width"] = is_whole ? Value(std::llround(width)) : Value(width);
  }
  if (values.at("width") == usual.at("width")) values.erase("width");
  return values;
}

std::optional<Recognised> as_model(const std::string& name, const ModelEntry& entry,
                                   const NamedTensors& stored) {
  auto shape = shape_in(stored);
  const auto usual = usual_settings(entry, shape);
  if (!usual) return std::nullopt;
  for (const auto& variant : variants(*usual, stored)) {
    const auto values = width_of(entry, shape, *usual, variant, stored);
    if (!values) continue;
    auto model = built(entry, shape, *values);
    if (!model || model->head() == nullptr) continue;
    auto wanted = weights_of(*model);
    const auto ours = renamed(stored, wanted);
    if (!have_same_names(ours, wanted)) continue;
    for (auto& [own, tensor] : wanted) {
      if (tensor.is_same(model->head()->linear()->weight)) shape.classes = ours.at(own).size(0);
    }
    model = built(entry, shape, *values);
    if (!model || !have_same_shapes(ours, weights_of(*model))) continue;
    return Recognised{
        .model = name,
        .settings = *values,
        .classes = shape.classes,
        .channels = shape.height > 1 ? shape.channels : 0,
        .image_side = values->contains("patch") || usual->contains("patch") ? shape.height : 0,
        .tensors = static_cast<int64_t>(ours.size())};
  }
  return std::nullopt;
}

}  // namespace

std::vector<Recognised> recognised_models(const NamedTensors& stored) {
  const torch::NoGradGuard no_grad;
  std::vector<Recognised> found;
  for (const auto& [name, entry] : models().entries()) {
    if (entry.is_of_file || entry.is_checked_by_building) continue;
    if (const auto fits = as_model(name, entry, stored)) found.push_back(*fits);
  }
  const auto is_usual = [](const Recognised& each) { return !each.settings.contains("width"); };
  if (std::any_of(found.begin(), found.end(), is_usual)) {
    std::erase_if(found, [&](const auto& each) { return !is_usual(each); });
  }
  return found;
}

Recognised recognised_model(const NamedTensors& stored, const std::string& where) {
  const auto found = recognised_models(stored);
  check(!found.empty(), where, ": its ", stored.size(),
        " tensors fit no architecture that kelvin knows; name one with --model, or save the "
        "network with torch.jit.save");
  std::vector<std::string> names;
  for (const auto& each : found) names.push_back(each.model);
  check(found.size() == 1, where, ": fits ", join(names, " and "), "; say which with --model");
  return found.front();
}

}  // namespace kelvin
