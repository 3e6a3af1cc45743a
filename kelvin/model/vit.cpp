#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/model/attention.h"
#include "kelvin/model/head.h"
#include "kelvin/model/layers.h"
#include "kelvin/model/model.h"
#include "kelvin/ops/reference_ops.h"

namespace kelvin {
namespace {

using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;
using torch::nn::Dropout;
using torch::nn::LayerNorm;
using torch::nn::Linear;
using torch::nn::LinearOptions;

// What the members of the family differ in.
struct VitPlan {
  int64_t width = 768;  // of a token
  int64_t heads = 12;
};

struct VitOptions {
  double width = 1;  // multiplies the width of tokens
  int64_t depth = 12;
  int64_t patch = 16;  // pixels a side
  double dropout = 0;  // after the position embedding, in attention and in the MLPs
  AttentionOptions attention = {};
  HeadOptions head = {};
};

LayerNorm layer_norm(int64_t width) {
  return LayerNorm(torch::nn::LayerNormOptions({width}).eps(1e-6));
}

// Attention, then an MLP of four times the width on each token; both see normalised tokens and add
// to the tokens as they were.
class TransformerBlock : public torch::nn::Module {
 public:
  explicit TransformerBlock(const AttentionOptions& options)
      : norm1_(register_module("norm1", layer_norm(options.width))),
        attention_(register_module("attn", std::make_shared<Attention>(options))),
        norm2_(register_module("norm2", layer_norm(options.width))),
        widen_(LinearOptions(options.width, 4 * options.width).bias(options.bias)),
        narrow_(LinearOptions(4 * options.width, options.width).bias(options.bias)),
        dropout_(options.dropout) {
    const auto mlp = register_module("mlp", std::make_shared<torch::nn::Module>("mlp"));
    mlp->register_module("fc1", widen_);
    mlp->register_module("fc2", narrow_);
    mlp->register_module("drop", dropout_);
  }

  // What becomes of the first `wanted` tokens.  `name` is the block's full name in the network.
  torch::Tensor forward(const torch::Tensor& tokens, int64_t wanted, const std::string& name,
                        Taps* taps) {
    const auto first = tokens.narrow(1, 0, wanted);
    const auto mixed = attention_->forward(norm1_(tokens), first, name + ".attn", taps);
    return add_mlp(mixed, name + ".mlp", taps);
  }

 private:
  torch::Tensor add_mlp(const torch::Tensor& tokens, const std::string& name, Taps* taps) {
    const auto input = norm2_(tokens);
    const auto first = product_of(widen_, input);
    const auto hidden = gelu_of(first);
    if (taps) taps->record(layer_record(name + ".fc1", widen_, input, first, hidden));
    const auto kept = dropout_(hidden);
    const auto second = product_of(narrow_, kept);
    const auto added = dropout_(second);
    auto output = residual_sum(tokens, added);
    if (taps) {
      taps->record(
          residual_record(layer_record(name + ".fc2", narrow_, kept, second, output), added));
    }
    return output;
  }

  LayerNorm norm1_;
  std::shared_ptr<Attention> attention_;
  LayerNorm norm2_;
  Linear widen_;
  Linear narrow_;
  Dropout dropout_;
};

// The vision transformers of Dosovitskiy et al.: patches as tokens, a class token before them,
// learned positions, and the class token's end as the features.  Parameter names are timm's.
class Vit : public Model {
 public:
  Vit(const ModelShape& shape, const VitOptions& options) : dropout_(options.dropout) {
    const auto width = options.attention.width;
    const auto patches = (shape.height / options.patch) * (shape.width / options.patch);
    class_token_ = register_parameter("cls_token", torch::empty({1, 1, width}));
    positions_ = register_parameter("pos_embed", torch::empty({1, 1 + patches, width}));
    const auto embedding =
        register_module("patch_embed", std::make_shared<torch::nn::Module>("patch_embed"));
    projection_ = embedding->register_module(
        "proj", Conv2d(Conv2dOptions(shape.channels, width, options.patch)
                           .stride(options.patch)
                           .bias(options.head.bias)));
    register_module("pos_drop", dropout_);
    add_blocks(options);
    norm_ = register_module("norm", layer_norm(width));
    head_ = Head(width, shape.classes, options.head);
    head_.register_in(*this, *this, "head");
    draw_weights();
  }

  torch::Tensor forward(const torch::Tensor& images, Taps* taps) override {
    auto tokens = dropout_(embedded(images, taps));
    for (auto& [name, block] : blocks_) {
      const bool is_last = block == blocks_.back().second;
      const auto wanted = is_last && reads_class_token_alone(taps) ? 1 : tokens.size(1);
      tokens = block->forward(tokens, wanted, name, taps);
    }
    return head_.forward(norm_(tokens.select(1, 0)), "head", taps);
  }

  Head* head() override { return &head_; }

 private:
  // Whether the last block can leave out what becomes of all other tokens: where nobody looks at
  // them, and only in training, since products of fewer rows may round otherwise.  Dropout would
  // draw other numbers.
  bool reads_class_token_alone(const Taps* taps) const {
    return taps == nullptr && !uses_reference_ops() && torch::GradMode::is_enabled() &&
           dropout_->options.p() == 0;
  }

  void add_blocks(const VitOptions& options) {
    const auto blocks = register_module("blocks", std::make_shared<torch::nn::Module>("blocks"));
    for (int64_t i = 0; i < options.depth; ++i) {
      const auto block = blocks->register_module(
          std::to_string(i), std::make_shared<TransformerBlock>(options.attention));
      blocks_.emplace_back("blocks." + std::to_string(i), block);
    }
  }

  // The class token, then the patches row by row, each with its position: [samples, tokens, width].
  torch::Tensor embedded(const torch::Tensor& images, Taps* taps) {
    const auto maps = product_of(projection_, images);
    const auto patches = maps.flatten(2).transpose(1, 2);
    auto tokens = torch::cat({class_token_.expand({images.size(0), -1, -1}), patches}, 1);
    tokens = tokens + positions_;
    if (taps) taps->record(layer_record("patch_embed.proj", projection_, images, maps, tokens));
    return tokens;
  }

  // As timm; its cut of the normal distribution at 100 standard deviations is none.  Patches keep
  // the initialisation that convolutions have.
  void draw_weights() {
    constexpr double kStdDev = 0.02;
    torch::NoGradGuard no_grad;
    class_token_.normal_(0, 1e-6);
    positions_.normal_(0, kStdDev);
    for (auto& module : modules(/*include_self=*/false)) {
      if (auto* linear = module->as<Linear>()) {
        linear->weight.normal_(0, kStdDev);
        if (linear->bias.defined()) linear->bias.zero_();
      }
    }
  }

  torch::Tensor class_token_;
  torch::Tensor positions_;
  Conv2d projection_{nullptr};
  Dropout dropout_;
  std::vector<std::pair<std::string, std::shared_ptr<TransformerBlock>>> blocks_;
  LayerNorm norm_{nullptr};
  Head head_;
};

int64_t scaled_width(const VitPlan& plan, double factor) {
  const auto heads = static_cast<double>(plan.heads);
  const auto head_width = std::llround(static_cast<double>(plan.width) * factor / heads);
  return plan.heads * std::max<int64_t>(1, head_width);
}

void check_options(const Settings& settings, const ModelShape& shape, const VitOptions& options) {
  check(options.width >= 0.015625 && options.width <= 16, settings.full_name("width"),
        ": must be in [0.015625, 16], got ", options.width);
  check(options.depth >= 1 && options.depth <= 1000, settings.full_name("depth"),
        ": must be from 1 to 1000, got ", options.depth);
  check(options.patch >= 1 && shape.height % options.patch == 0 && shape.width % options.patch == 0,
        settings.full_name("patch"), ": must divide both sides of the images, which are ",
        shape.height, " x ", shape.width, ", got ", options.patch);
  check_dropout(settings, options.dropout);
}

auto reader(const VitPlan& plan) {
  return [plan](const ModelShape& shape, Settings& settings) -> ModelBuilder {
    VitOptions options{.patch = is_large(shape) ? 16 : 4};
    settings.read("width", options.width);
    settings.read("depth", options.depth);
    settings.read("patch", options.patch);
    settings.read("dropout", options.dropout);
    read_attention(settings, options.attention);
    options.head = read_head(settings);
    check_options(settings, shape, options);
    options.attention.width = scaled_width(plan, options.width);
    options.attention.heads = plan.heads;
    options.attention.bias = options.head.bias;
    options.attention.dropout = options.dropout;
    return [shape, options] { return std::make_shared<Vit>(shape, options); };
  };
}

bool add(const std::string& name, const VitPlan& plan) {
  return models().add(name,
                      {.summary = "vision transformer, 12 blocks of " + std::to_string(plan.heads) +
                                  " heads, " + std::to_string(plan.width) + " wide",
                       .reference = "An image is worth 16x16 words, arXiv 2010.11929",
                       .read = reader(plan)});
}

const bool registered_tiny = add("vit_tiny", {.width = 192, .heads = 3});
const bool registered_small = add("vit_small", {.width = 384, .heads = 6});
const bool registered_base = add("vit_base", {.width = 768, .heads = 12});

}  // namespace
}  // namespace kelvin
