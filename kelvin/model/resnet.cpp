#include <torch/torch.h>

#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/model/head.h"
#include "kelvin/model/layers.h"
#include "kelvin/model/model.h"
#include "kelvin/model/residual_block.h"

namespace kelvin {
namespace {

using torch::nn::BatchNorm2d;
using torch::nn::Conv2d;

enum class BlockKind { basic, bottleneck };

// What the members of the family differ in.
struct ResNetPlan {
  std::vector<int64_t> blocks;  // in each stage; channels double and maps halve between stages
  int64_t channels = 64;        // of the first stage, before expansion
  BlockKind kind = BlockKind::basic;
  Shortcut shortcut = Shortcut::projected;
};

struct ResNetOptions {
  double width = 1;             // multiplies the channels of all stages
  bool has_large_stem = false;  // 7x7 with stride 2 and a max-pool, for images of 224 x 224
  int64_t stem_stride = 1;  // of the small 3x3 stem; 2 halves the maps: four times fewer operations
  Shortcut shortcut = Shortcut::projected;
  HeadOptions head = {};
};

std::shared_ptr<ResidualBlock> block_of(BlockKind kind, const BlockShape& shape) {
  if (kind == BlockKind::basic) return std::make_shared<BasicBlock>(shape);
  return std::make_shared<Bottleneck>(shape);
}

// The residual networks of He et al.: for ImageNet, with the large stem or the small one that small
// images get, and for CIFAR.  Parameter names are torchvision's.
class ResNet : public Model {
 public:
  ResNet(const ModelShape& shape, const ResNetPlan& plan, const ResNetOptions& options)
      : has_large_stem_(options.has_large_stem) {
    const auto first = std::llround(static_cast<double>(plan.channels) * options.width);
    const auto stride = has_large_stem_ ? 2 : options.stem_stride;
    conv1_ = register_module(
        "conv1", same_convolution(shape.channels, first, has_large_stem_ ? 7 : 3, stride));
    bn1_ = register_module("bn1", BatchNorm2d(first));
    const auto features = add_stages(first, plan, options);
    head_ = Head(features, shape.classes, options.head);
    head_.register_in(*this, *this, "fc");
    for (auto& module : modules(/*include_self=*/false)) {
      if (auto* convolution = module->as<Conv2d>()) {
        torch::nn::init::kaiming_normal_(convolution->weight, 0, torch::kFanOut, torch::kReLU);
      }
    }
  }

  torch::Tensor forward(const torch::Tensor& images, Taps* taps) override {
    const auto pre_activation = product_of(conv1_, images);
    auto activations = normed_relu(bn1_, pre_activation);
    if (taps) taps->record(layer_record("conv1", conv1_, images, pre_activation, activations));
    if (has_large_stem_) activations = torch::max_pool2d(activations, 3, 2, 1);
    for (auto& [name, block] : blocks_) activations = block->forward(activations, name, taps);
    return head_.forward(activations.mean({2, 3}), "fc", taps);
  }

  Head* head() override { return &head_; }

 private:
  // Returns the channels of the last stage.
  int64_t add_stages(int64_t first, const ResNetPlan& plan, const ResNetOptions& options) {
    const auto expansion =
        plan.kind == BlockKind::basic ? BasicBlock::kExpansion : Bottleneck::kExpansion;
    int64_t inputs = first;
    for (size_t stage = 0; stage < plan.blocks.size(); ++stage) {
      const auto name = "layer" + std::to_string(stage + 1);
      const auto layer = register_module(name, std::make_shared<torch::nn::Module>(name));
      const auto outputs = (first << stage) * expansion;
      for (int64_t i = 0; i < plan.blocks[stage]; ++i) {
        auto block = block_of(plan.kind, {.inputs = inputs,
                                          .outputs = outputs,
                                          .stride = i == 0 && stage > 0 ? 2 : 1,
                                          .shortcut = options.shortcut});
        layer->register_module(std::to_string(i), block);
        blocks_.emplace_back(name + "." + std::to_string(i), block);
        inputs = outputs;
      }
    }
    return inputs;
  }

  bool has_large_stem_;
  Conv2d conv1_{nullptr};
  BatchNorm2d bn1_{nullptr};
  std::vector<std::pair<std::string, std::shared_ptr<ResidualBlock>>> blocks_;
  Head head_;
};

Shortcut read_shortcut(Settings& settings, Shortcut usual) {
  std::string name = usual == Shortcut::padded ? "A" : "B";
  settings.read("shortcut", name);
  check(name == "A" || name == "B", settings.full_name("shortcut"),
        ": must be A (padded) or B (projected), got '", name, "'");
  return name == "A" ? Shortcut::padded : Shortcut::projected;
}

void check_width(const Settings& settings, const ResNetPlan& plan, const ResNetOptions& options) {
  const double least = 1.0 / static_cast<double>(plan.channels);
  check(options.width >= least && options.width <= 16, settings.full_name("width"),
        ": must be in [", least, ", 16], got ", options.width);
}

auto reader(const ResNetPlan& plan, bool has_stems) {
  return [plan, has_stems](const ModelShape& shape, Settings& settings) -> ModelBuilder {
    ResNetOptions options;
    settings.read("width", options.width);
    if (has_stems) options.has_large_stem = read_is_for_imagenet(settings, "stem", shape);
    settings.read("stem_stride", options.stem_stride);
    options.shortcut = read_shortcut(settings, plan.shortcut);
    options.head = read_head(settings);
    check_width(settings, plan, options);
    check(options.stem_stride == 1 || options.stem_stride == 2, settings.full_name("stem_stride"),
          ": must be 1 or 2, got ", options.stem_stride);
    check(options.stem_stride == 1 || !options.has_large_stem, settings.full_name("stem_stride"),
          ": is for the cifar stem; the imagenet stem has its own stride");
    return [shape, plan, options] { return std::make_shared<ResNet>(shape, plan, options); };
  };
}

constexpr auto kReference = "Deep residual learning, arXiv 1512.03385";

bool add(const std::string& name, const std::string& summary, const ResNetPlan& plan) {
  return models().add(name, {.summary = summary,
                             .reference = kReference,
                             .read = reader(plan, /*has_stems=*/plan.channels == 64)});
}

const bool registered_10 =
    add("resnet10", "residual network, one basic block in each of 4 stages", {{1, 1, 1, 1}});
const bool registered_18 =
    add("resnet18", "residual network, two basic blocks in each of 4 stages", {{2, 2, 2, 2}});
const bool registered_34 =
    add("resnet34", "residual network, 3, 4, 6 and 3 basic blocks", {{3, 4, 6, 3}});
const bool registered_50 =
    add("resnet50", "residual network, 3, 4, 6 and 3 bottlenecks",
        {.blocks = {3, 4, 6, 3}, .channels = 64, .kind = BlockKind::bottleneck});

// Depth 6n + 2: n blocks in each of three stages of 16, 32 and 64 channels.
bool add_for_cifar(int64_t n) {
  return add(
      "resnet" + std::to_string(6 * n + 2),
      "residual network for CIFAR, " + std::to_string(n) + " basic blocks in each of 3 stages",
      {.blocks = {n, n, n}, .channels = 16, .shortcut = Shortcut::padded});
}

const bool registered_20 = add_for_cifar(3);
const bool registered_32 = add_for_cifar(5);
const bool registered_44 = add_for_cifar(7);
const bool registered_56 = add_for_cifar(9);

}  // namespace
}  // namespace kelvin
