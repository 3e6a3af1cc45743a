#include "kelvin/model/truncated.h"

#include <torch/torch.h>

#include <set>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/model/modes.h"
#include "kelvin/ops/layer_matrices.h"

namespace kelvin {
namespace {

using Parameters = std::set<const c10::TensorImpl*>;

// Those that `output` depends on.
Parameters parameters_of(const torch::Tensor& output, const Model& model) {
  const auto all = model.parameters();
  const auto gradients = torch::autograd::grad({output.sum()}, all, /*grad_outputs=*/{},
                                               /*retain_graph=*/false, /*create_graph=*/false,
                                               /*allow_unused=*/true);
  Parameters used;
  for (size_t i = 0; i < all.size(); ++i) {
    if (gradients[i].defined()) used.insert(all[i].unsafeGetTensorImpl());
  }
  return used;
}

bool is_unused(const torch::nn::Module& module, const Parameters& used) {
  const auto parameters = module.parameters();
  for (const auto& parameter : parameters) {
    if (used.contains(parameter.unsafeGetTensorImpl())) return false;
  }
  return !parameters.empty();
}

void remove_unused(torch::nn::Module& module, const Parameters& used) {
  for (const auto& child : module.named_children()) {
    if (is_unused(*child.value(), used)) {
      module.unregister_module(child.key());
    } else {
      remove_unused(*child.value(), used);
    }
  }
}

// Forward passes end after the layer for as long as this lives, whatever they throw.
class EndAfter {
 public:
  EndAfter(Taps& taps, const std::string& layer) : taps_(taps) { taps.end_after(layer); }
  ~EndAfter() { taps_.end_after(""); }
  EndAfter(const EndAfter&) = delete;
  EndAfter& operator=(const EndAfter&) = delete;

 private:
  Taps& taps_;
};

std::string names_of_layers(const Taps& taps) {
  std::vector<std::string> names;
  for (const auto& layer : taps.layers()) names.push_back(layer.name);
  return join(names, ", ");
}

}  // namespace

Truncated::Truncated(std::shared_ptr<Model> whole, const Truncation& truncation,
                     const ModelShape& shape)
    : whole_(std::move(whole)), truncation_(truncation) {
  torch::AutoGradMode with_gradients(true);
  const EvaluationMode evaluation(*whole_);
  const auto device = whole_->parameters().front().device();
  const auto image = torch::zeros({1, shape.channels, shape.height, shape.width}, device);
  Taps taps;
  const auto features = features_of(image, taps);
  const auto used = parameters_of(features, *whole_);
  remove_unused(*whole_, used);
  for (const auto& child : whole_->named_children()) register_module(child.key(), child.value());
  for (const auto& own : whole_->named_parameters(/*recurse=*/false)) {
    if (used.contains(own.value().unsafeGetTensorImpl())) {
      register_parameter(own.key(), own.value());
    }
  }
  probe_ = Head(features.size(1), shape.classes, {});
  probe_.register_in(*this, *this, "probe");
  to(device);
}

torch::Tensor Truncated::features_of(const torch::Tensor& images, Taps& taps) {
  const EndAfter end(taps, truncation_.layer);
  try {
    whole_->forward(images, &taps);
  } catch (const LayerReached&) {
    return pooled_features(taps.layers().back().output, truncation_.pool);
  }
  throw Error(c10::str("model.layer: there is no layer '", truncation_.layer,
                       "'; there are: ", names_of_layers(taps)));
}

torch::Tensor Truncated::forward(const torch::Tensor& images, Taps* taps) {
  Taps own({.layers = false, .attention = false});
  auto& used = taps ? *taps : own;
  const auto features = features_of(images, used);
  return probe_.forward(features, "probe", taps);
}

void Truncated::set_probe(const torch::Tensor& weight, const torch::Tensor& bias) {
  torch::NoGradGuard no_grad;
  const auto& linear = probe_.linear();
  check(weight.sizes() == linear->weight.sizes() && bias.sizes() == linear->bias.sizes(),
        "Truncated: the probe must be ", linear->weight.sizes(), " and ", linear->bias.sizes(),
        ", got ", weight.sizes(), " and ", bias.sizes());
  linear->weight.copy_(weight);
  linear->bias.copy_(bias);
}

namespace {

ModelBuilder read_truncated(const ModelShape& shape, Settings& settings) {
  std::string of = "resnet20";
  Truncation truncation{.layer = "layer2.2.conv2"};
  settings.read("of", of);
  settings.read("layer", truncation.layer);
  settings.read("pool", truncation.pool);
  check(of != "truncated", settings.full_name("of"), ": must be another model than truncated");
  check(!models().find(of).is_of_file, settings.full_name("of"), ": must be an architecture, got ",
        of);
  check(truncation.pool >= 0, settings.full_name("pool"), ": must not be below 0, got ",
        truncation.pool);
  return [whole = models().find(of).read(shape, settings), truncation, shape] {
    return std::make_shared<Truncated>(whole(), truncation, shape);
  };
}

const bool truncated_registered = models().add(
    "truncated", {.summary = "the first layers of a model and a linear classifier on them",
                  .reference = "Unpacking Softmax, abstract; The tunnel effect, arXiv 2305.19753",
                  .read = read_truncated,
                  .is_checked_by_building = true});

}  // namespace
}  // namespace kelvin
