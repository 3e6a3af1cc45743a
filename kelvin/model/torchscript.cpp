#include "kelvin/model/torchscript.h"

#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/torch.h>

#include <algorithm>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/text.h"
#include "kelvin/formats/torchscript_file.h"

namespace kelvin {
namespace {

// What LibTorch says goes on for many lines, of which the one that tells comes last, or before the
// backtrace.
std::string told_line(const std::string& message) {
  std::string told;
  for (const auto& line : split(message, '\n')) {
    const auto text = line.substr(std::min(line.find_first_not_of(' '), line.size()));
    if (text.starts_with("frame #") || text.starts_with("Exception raised from")) break;
    if (text.starts_with("RuntimeError: ")) return shown_text(text.substr(14));
    if (!text.empty() && told.empty()) told = text;
  }
  return shown_text(told);
}

template <class Work>
auto said_in_one_line(const std::string& what, const Work& work) {
  try {
    return work();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(what + ": " + told_line(error.what()));
  }
}

torch::jit::Module loaded(const std::string& file) {
  check_is_file(file);
  return said_in_one_line(file + ": cannot be loaded as TorchScript", [&] {
    auto module = torch::jit::load(file, torch::kCPU);
    module.eval();
    return module;
  });
}

}  // namespace

TorchscriptModel::TorchscriptModel(const std::string& file, const ModelShape& shape)
    : file_(file), shape_(shape), module_(loaded(file)) {
  look_for_layers();
  register_all();
  Taps taps;
  const torch::NoGradGuard no_grad;
  const auto images = torch::zeros({1, shape.channels, shape.height, shape.width});
  const auto logits = forward(images, &taps);
  check(logits.dim() == 2 && logits.size(0) == 1, file, ": must make logits [samples, classes], ",
        "makes ", logits.sizes(), " of one image");
  check(logits.size(1) == shape.classes, file, ": has ", logits.size(1),
        " outputs; the dataset has ", shape.classes, " classes");
}

void TorchscriptModel::register_all() {
  const auto add = [&](std::string name, const torch::Tensor& tensor) {
    // Dots are for modules alone.
    for (auto& letter : name) letter = letter == '.' ? '/' : letter;
    register_parameter(name, tensor, /*requires_grad=*/false);
  };
  for (const auto& parameter : module_.named_parameters()) add(parameter.name, parameter.value);
  if (!parameters().empty()) return;
  // A file that was frozen before it was saved has nothing but constants.
  for (const auto* layers : {&graph_.layers, &graph_.projections}) {
    for (const auto& layer : *layers) {
      add(layer.name + ".weight", layer.weight);
      if (layer.bias.defined()) add(layer.name + ".bias", layer.bias);
    }
  }
}

void TorchscriptModel::look_for_layers() {
  graph_ = said_in_one_line(file_ + ": its graph cannot be read",
                            [&] { return tapped_graph(module_, file_); });
}

void TorchscriptModel::to(torch::Device device, bool /*non_blocking*/) {
  module_.to(device);
  look_for_layers();
}

torch::Tensor TorchscriptModel::forward(const torch::Tensor& images, Taps* taps) {
  const auto what = c10::str(file_, ": its code fails on images of ", shape_.channels, " x ",
                             shape_.height, " x ", shape_.width);
  return said_in_one_line(what, [&]() -> torch::Tensor {
    torch::jit::Stack stack = {graph_.frozen._ivalue(),
                               graph_.overwrites_images ? images.clone() : images};
    torch::jit::Code code(taps == nullptr ? graph_.plain : graph_.tapped, "forward");
    torch::jit::InterpreterState(code).run(stack);
    if (taps == nullptr) return stack.at(0).toTensor();
    std::vector<torch::Tensor> values;
    for (const auto& value : stack.at(0).toTupleRef().elements()) {
      values.push_back(value.toTensor());
    }
    stack.clear();
    record(values, *taps);
    return values.at(0);
  });
}

void TorchscriptModel::record(const std::vector<torch::Tensor>& values, Taps& taps) const {
  for (const auto& each : graph_.projections) {
    taps.count_macs(each.weight, values.at(each.pre_activation));
  }
  for (const auto& each : graph_.attention) {
    const auto& logits = values.at(each.logits);
    if (logits.dim() != 4) continue;
    taps.record({.name = each.name, .logits = logits, .weights = values.at(each.weights)},
                /*macs=*/0);
  }
  for (const auto& each : graph_.layers) {
    LayerRecord layer{.name = each.name, .weight = each.weight};
    layer.bias = each.bias;
    layer.input = values.at(each.input);
    layer.pre_activation = values.at(each.pre_activation);
    layer.output = values.at(each.output);
    if (each.before_add > 0) layer.before_add = values.at(each.before_add);
    layer.stride = each.stride;
    layer.padding = each.padding;
    taps.record(std::move(layer));
  }
}

namespace {

ModelBuilder read_torchscript(const ModelShape& shape, Settings& settings) {
  std::string file;
  settings.read("file", file);
  check(!file.empty(), settings.full_name("file"), ": must name a file of torch.jit.save");
  return [shape, file] { return std::make_shared<TorchscriptModel>(file, shape); };
}

const bool torchscript_registered = models().add(
    kTorchscriptModel, {.summary = "somebody else's network, as torch.jit.save wrote it",
                        .reference = "any network: model.file=NETWORK.pt",
                        .read = read_torchscript,
                        .is_of_file = true});

}  // namespace
}  // namespace kelvin
