#include "kelvin/model/script_graph.h"

#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/freeze_module.h>
#include <torch/csrc/jit/passes/remove_mutation.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

std::string kind_of(const Node* node) { return node->kind().toQualString(); }

// What may stand between a weight and what its layer hands on.
bool is_of_layer(const std::string& kind) {
  static const std::set<std::string> kinds = {"aten::batch_norm",
                                              "aten::layer_norm",
                                              "aten::group_norm",
                                              "aten::instance_norm",
                                              "aten::add",
                                              "aten::relu",
                                              "aten::relu6",
                                              "aten::hardtanh",
                                              "aten::leaky_relu",
                                              "aten::elu",
                                              "aten::gelu",
                                              "aten::silu",
                                              "aten::hardswish",
                                              "aten::sigmoid",
                                              "aten::tanh",
                                              "aten::dropout",
                                              "aten::feature_dropout"};
  return kinds.contains(kind.ends_with('_') ? kind.substr(0, kind.size() - 1) : kind);
}

// Of names of modules by the first number of their weights, which freezing does not copy.
using Owners = std::map<const void*, std::string>;

Owners owners_of(const torch::jit::Module& module) {
  Owners owners;
  for (const auto& parameter : module.named_parameters()) {
    const auto dot = parameter.name.rfind('.');
    if (parameter.value.numel() == 0) continue;
    owners[parameter.value.data_ptr()] =
        dot == std::string::npos ? parameter.name : parameter.name.substr(0, dot);
  }
  return owners;
}

std::optional<torch::Tensor> constant_tensor(Value* value) {
  if (kind_of(value->node()) == "aten::t") {
    const auto turned = constant_tensor(value->node()->input(0));
    if (turned) return turned->t();
    return std::nullopt;
  }
  const auto constant = torch::jit::toIValue(value);
  if (!constant || !constant->isTensor()) return std::nullopt;
  return constant->toTensor();
}

// One number that stands for all axes.
std::optional<int64_t> same_in_all(Value* value) {
  const auto constant = torch::jit::toIValue(value);
  if (!constant || !constant->isIntList()) return std::nullopt;
  const auto numbers = constant->toIntVector();
  if (numbers.empty()) return std::nullopt;
  if (std::any_of(numbers.begin(), numbers.end(), [&](auto each) { return each != numbers[0]; })) {
    return std::nullopt;
  }
  return numbers[0];
}

// A layer whose places are not known yet.
struct Found {
  ScriptLayer layer;
  Value* input = nullptr;
  Value* pre_activation = nullptr;
};

bool is_constant_bool(Value* value, bool wanted) {
  const auto constant = torch::jit::toIValue(value);
  return constant && constant->isBool() && constant->toBool() == wanted;
}

bool is_constant_int(Value* value, int64_t wanted) {
  const auto constant = torch::jit::toIValue(value);
  return constant && constant->isInt() && constant->toInt() == wanted;
}

// Numbers, or "valid", or "same" where that is the same on all sides.
std::optional<int64_t> padding_of(Value* value, const torch::Tensor& weight,
                                  std::optional<int64_t> stride) {
  const auto constant = torch::jit::toIValue(value);
  if (!constant || !constant->isString()) return same_in_all(value);
  if (constant->toStringRef() == "valid") return 0;
  const auto side = weight.size(2);
  if (stride != 1 || side % 2 == 0 || side != weight.size(3)) return std::nullopt;
  return side / 2;
}

std::optional<Found> convolution_in(Node* node, const std::string& kind) {
  const bool is_general = kind == "aten::_convolution" || kind == "aten::convolution";
  if (!is_general && kind != "aten::conv2d" && kind != "aten::_convolution_mode") {
    return std::nullopt;
  }
  const auto weight = constant_tensor(node->input(1));
  if (!weight || weight->dim() != 4) return std::nullopt;
  const auto stride = same_in_all(node->input(3));
  const auto padding = padding_of(node->input(4), *weight, stride);
  const bool is_plain = is_constant_int(node->input(is_general ? 8 : 6), 1) &&
                        (!is_general || is_constant_bool(node->input(6), false)) && stride &&
                        padding && same_in_all(node->input(5)) == 1;
  if (!is_plain) return std::nullopt;
  ScriptLayer layer{
      .name = {}, .weight = *weight, .bias = {}, .stride = *stride, .padding = *padding};
  if (const auto bias = constant_tensor(node->input(2))) layer.bias = *bias;
  return Found{
      .layer = std::move(layer), .input = node->input(0), .pre_activation = node->output()};
}

std::optional<Found> linear_in(Node* node, const std::string& kind) {
  const auto found = [&](Value* input, Value* weight, Value* bias, bool is_turned) {
    std::optional<Found> result;
    const auto matrix = constant_tensor(weight);
    if (!matrix || matrix->dim() != 2) return result;
    result = Found{.layer = {.name = {}, .weight = is_turned ? matrix->t() : *matrix, .bias = {}},
                   .input = input,
                   .pre_activation = node->output()};
    if (bias == nullptr) return result;
    if (const auto vector = constant_tensor(bias)) result->layer.bias = *vector;
    return result;
  };
  if (kind == "aten::linear") return found(node->input(0), node->input(1), node->input(2), false);
  if (kind == "aten::addmm") return found(node->input(1), node->input(2), node->input(0), true);
  if (kind == "aten::mm" || kind == "aten::matmul") {
    return found(node->input(0), node->input(1), nullptr, true);
  }
  return std::nullopt;
}

// What a layer hands on, and what it was before a residual connection added to it.
struct Ends {
  Value* before_add = nullptr;
  Value* output = nullptr;
};

Ends ends_of(Value* value) {
  Ends ends{.output = value};
  while (ends.output->uses().size() == 1) {
    auto* user = ends.output->uses()[0].user;
    if (user->outputs().size() != 1 || !is_of_layer(kind_of(user))) break;
    if (user->owningBlock() != value->node()->owningBlock()) break;
    if (kind_of(user).starts_with("aten::add")) {
      const auto other = ends.output->uses()[0].offset == 0 ? 1 : 0;
      const bool adds_tensor = user->input(other)->type()->isSubtypeOf(*c10::TensorType::get());
      if (adds_tensor && !constant_tensor(user->input(other))) ends.before_add = ends.output;
    }
    ends.output = user->output();
  }
  return ends;
}

// Adds values to the outputs, each once.
class Outputs {
 public:
  // `overwritten` are those that something writes into, itself or through a view.
  Outputs(Value* logits, std::set<Value*> overwritten)
      : values_{logits}, overwritten_(std::move(overwritten)) {}

  // As it is when it is made.
  size_t place_of(Value* value) { return place_of_kept(kept_copy(value, nullptr)); }

  // As `reader` finds it, perhaps after others have written into it.
  size_t place_of_input(Value* value, Node* reader) {
    return place_of_kept(kept_copy(value, reader));
  }
  void register_in(Graph& graph) const {
    auto* tuple = graph.insertNode(graph.createTuple(values_));
    graph.eraseOutput(0);
    graph.registerOutput(tuple->output());
  }

 private:
  size_t place_of_kept(Value* kept) {
    const auto found = std::find(values_.begin(), values_.end(), kept);
    if (found != values_.end()) return static_cast<size_t>(found - values_.begin());
    values_.push_back(kept);
    return values_.size() - 1;
  }

  // A clone made right before `reader`, or behind the node that makes the value if it is null.
  Value* kept_copy(Value* value, Node* reader) {
    if (!overwritten_.contains(value)) return value;
    const auto [known, is_new] = copies_.try_emplace({value, reader}, nullptr);
    if (!is_new) return known->second;
    auto& graph = *value->owningGraph();
    auto* none = graph.createNone();
    auto* copy = graph.create(c10::Symbol::fromQualString("aten::clone"), {value, none->output()});
    if (reader != nullptr) {
      none->insertBefore(reader);
    } else if (value->node()->kind() == torch::jit::prim::Param) {
      graph.prependNode(none);
    } else {
      none->insertAfter(value->node());
    }
    copy->insertAfter(none);
    copy->output()->setType(value->type());
    return known->second = copy->output();
  }

  std::vector<Value*> values_;
  std::set<Value*> overwritten_;
  std::map<std::pair<Value*, Node*>, Value*> copies_;
};

// Ends in logits: no log-softmax and no softmax after them.
void drop_last_softmax(Graph& graph) {
  static const std::set<std::string> kinds = {"aten::log_softmax", "aten::softmax",
                                              "aten::_log_softmax", "aten::_softmax"};
  auto* output = graph.outputs()[0];
  if (!kinds.contains(kind_of(output->node()))) return;
  auto* logits = output->node()->input(0);
  graph.eraseOutput(0);
  graph.registerOutput(logits);
  torch::jit::EliminateDeadCode(graph.block());
}

// Values of the graph itself that something writes into.
std::set<Value*> overwritten_values(const std::shared_ptr<Graph>& graph) {
  const torch::jit::AliasDb aliases(graph);
  std::set<Value*> found;
  const auto look_at = [&](Value* value) {
    const bool is_tensor = value->type()->isSubtypeOf(*c10::TensorType::get());
    if (is_tensor && aliases.hasWriters(value)) found.insert(value);
  };
  for (auto* input : graph->inputs()) look_at(input);
  for (auto* node : graph->nodes()) {
    for (auto* output : node->outputs()) look_at(output);
  }
  return found;
}

class Finder {
 public:
  Finder(std::shared_ptr<Graph> graph, Owners owners, const std::set<Value*>& overwritten)
      : graph_(std::move(graph)),
        owners_(std::move(owners)),
        outputs_(graph_->outputs()[0], overwritten) {}

  void find(ScriptGraph& result) {
    for (auto* node : graph_->nodes()) look_at(node);
    std::vector<Ends> ends;  // before copies give values more uses
    for (const auto& found : found_) ends.push_back(ends_of(found.pre_activation));
    // A shortcut's projection ends where the layers beside it end, which are more.
    std::map<Value*, size_t> deepest;
    for (size_t i = 0; i < found_.size(); ++i) {
      const auto [other, is_new] = deepest.emplace(ends[i].output, i);
      if (!is_new &&
          depth_[found_[i].pre_activation] > depth_[found_[other->second].pre_activation])
        other->second = i;
    }
    for (size_t i = 0; i < found_.size(); ++i) {
      auto& list = deepest.at(ends[i].output) == i ? result.layers : result.projections;
      list.push_back(placed(found_[i], ends[i]));
    }
    for (auto* node : softmaxes_) {
      result.attention.push_back({.name = "attention." + std::to_string(result.attention.size()),
                                  .logits = outputs_.place_of_input(node->input(0), node),
                                  .weights = outputs_.place_of(node->output())});
    }
    outputs_.register_in(*graph_);
    result.tapped = graph_;
  }

 private:
  void look_at(Node* node) {
    const auto kind = kind_of(node);
    int64_t depth = 0;
    for (auto* input : node->inputs()) depth = std::max(depth, depth_[input]);
    auto found = convolution_in(node, kind);
    if (!found) found = linear_in(node, kind);
    if (found) {
      ++depth;
      found->layer.name = name_of(found->layer.weight);
      found_.push_back(std::move(*found));
    }
    const bool is_softmax = kind == "aten::softmax" || kind == "aten::_softmax";
    const bool is_over_last =
        is_softmax && (is_constant_int(node->input(1), -1) || is_constant_int(node->input(1), 3));
    if (is_over_last) softmaxes_.push_back(node);
    for (auto* output : node->outputs()) depth_[output] = depth;
  }

  std::string name_of(const torch::Tensor& weight) const {
    const auto owner = owners_.find(weight.data_ptr());
    if (owner != owners_.end()) return owner->second;
    return "layer." + std::to_string(found_.size());
  }

  ScriptLayer placed(const Found& found, const Ends& ends) {
    auto layer = found.layer;
    layer.input = outputs_.place_of_input(found.input, found.pre_activation->node());
    layer.pre_activation = outputs_.place_of(found.pre_activation);
    if (ends.before_add != nullptr) layer.before_add = outputs_.place_of(ends.before_add);
    layer.output = outputs_.place_of(ends.output);
    return layer;
  }

  std::shared_ptr<Graph> graph_;
  Owners owners_;
  Outputs outputs_;
  std::vector<Found> found_;
  std::vector<Node*> softmaxes_;
  std::map<Value*, int64_t> depth_;
};

// A network whose batches would decide what it computes was not in evaluation mode when it was
// traced.
void check_evaluates(Graph& graph, const std::string& where) {
  for (auto* node : graph.nodes()) {
    const auto kind = kind_of(node);
    const bool is_training =
        (kind == "aten::batch_norm" && is_constant_bool(node->input(5), true)) ||
        (kind.starts_with("aten::dropout") && is_constant_bool(node->input(2), true));
    check(!is_training, where, ": was traced in training mode; call eval() before torch.jit.trace");
  }
}

// Layers that share a weight would share a name.
void make_names_differ(std::vector<ScriptLayer>& layers) {
  std::map<std::string, int> seen;
  for (auto& layer : layers) {
    if (const auto count = ++seen[layer.name]; count > 1) {
      layer.name += "#" + std::to_string(count);
    }
  }
}

}  // namespace

ScriptGraph tapped_graph(const torch::jit::Module& module, const std::string& where) {
  const auto frozen = torch::jit::freeze_module(module);
  auto graph = frozen.get_method("forward").graph()->copy();
  torch::jit::RemoveTensorMutation(graph);
  check(graph->inputs().size() == 2, where, ": forward must take images alone, takes ",
        graph->inputs().size() - 1, " arguments");
  check(graph->outputs().size() == 1 &&
            graph->outputs()[0]->type()->isSubtypeOf(*c10::TensorType::get()),
        where, ": forward must return logits [samples, classes], returns ",
        graph->outputs()[0]->type()->annotation_str());
  check_evaluates(*graph, where);
  drop_last_softmax(*graph);
  const auto overwritten = overwritten_values(graph);
  ScriptGraph result;
  result.frozen = frozen;
  result.overwrites_images = overwritten.contains(graph->inputs()[1]);
  result.plain = graph->copy();
  Finder(graph, owners_of(module), overwritten).find(result);
  check(!result.layers.empty() && result.layers.back().weight.dim() == 2 &&
            result.layers.back().pre_activation == 0,
        where, ": a linear layer must make the logits; ",
        result.layers.empty() ? "no layer was found"
                              : "the last layer found is '" + result.layers.back().name + "'");
  make_names_differ(result.layers);
  return result;
}

}  // namespace kelvin
