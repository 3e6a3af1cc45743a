#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "kelvin/model/head.h"
#include "kelvin/model/model.h"
#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::vit_test {

constexpr ModelShape kImageNet{.height = 224, .width = 224, .classes = 1000};
constexpr ModelShape kSmall{.height = 16, .width = 16, .classes = 7};

std::shared_ptr<Model> vit(const std::string& name, const ModelShape& shape,
                           const Values& values = {}) {
  Settings settings("model", values);
  auto model = models().find(name).build(shape, settings);
  settings.reject_unknown_keys();
  return model;
}

// Two blocks of three heads, 24 wide, on 4 x 4 patches.
std::shared_ptr<Model> small_vit(Values values = {}) {
  values.insert({{"width", 0.125}, {"depth", 2}});
  return vit("vit_tiny", kSmall, values);
}

Taps taps_of(Model& model, const torch::Tensor& images) {
  torch::NoGradGuard no_grad;
  model.eval();
  Taps taps;
  model.forward(images, &taps);
  return taps;
}

bool is_scale_of_norm(const std::string& name) {
  return name.find("norm") != std::string::npos && name.ends_with("weight");
}

// Noise in all parameters, so that attention is not flat and no parameter is without effect: slices
// of one long vector, because hundreds of megabytes would take Python seconds to read.  Returns
// what `fill` below needs for the same weights: the vector, and by name where each slice begins.
NamedTensors draw_noise(Model& model, double size) {
  torch::NoGradGuard no_grad;
  constexpr int64_t kStep = 997;
  int64_t longest = 0;
  for (const auto& parameter : model.parameters()) {
    longest = std::max(longest, parameter.numel() + kStep * 200);
  }
  const auto vector = noise({longest}, 1).to(torch::kFloat32);
  NamedTensors drawn = {{"noise", vector}, {"size", doubles({size})}};
  int64_t begin = 0;
  for (auto& item : model.named_parameters()) {
    auto& parameter = item.value();
    const auto slice = vector.narrow(0, begin, parameter.numel()).view(parameter.sizes());
    parameter.copy_(is_scale_of_norm(item.key()) ? 1 + 0.3 * slice : size * slice);
    drawn[item.key()] = torch::tensor(begin);
    begin += kStep;
  }
  return drawn;
}

double relative_difference(const torch::Tensor& actual, const torch::Tensor& expected) {
  EXPECT_EQ(actual.sizes(), expected.sizes());
  return ((actual - expected).norm() / expected.norm()).item<double>();
}

// torchvision's names for ours, and its network with the weights of draw_noise().
constexpr auto kTorchvision = R"(
import torch, torchvision
torch.set_num_threads(2)
def theirs(name):
    for ours, other in (("cls_token", "class_token"), ("patch_embed.proj", "conv_proj"),
                        ("pos_embed", "encoder.pos_embedding"),
                        ("blocks.", "encoder.layers.encoder_layer_"),
                        ("norm1", "ln_1"), ("norm2", "ln_2"),
                        ("attn.qkv.", "self_attention.in_proj_"),
                        ("attn.proj", "self_attention.out_proj"),
                        ("mlp.fc1", "mlp.0"), ("mlp.fc2", "mlp.3"),
                        ("head.", "heads.head.")):
        name = name.replace(ours, other)
    return "encoder.ln" + name[4:] if name.startswith("norm.") else name
images, noise, size = (torch.from_numpy(x.pop(n)) for n in ("images", "noise", "size"))
def fill(m):
    shapes, weights = m.state_dict(), {}
    for name in x:
        shape = shapes[theirs(name)].shape
        drawn = noise[x[name]:x[name] + shape.numel()].view(shape)
        is_scale = "norm" in name and name.endswith("weight")
        weights[theirs(name)] = 1 + 0.3 * drawn if is_scale else size.item() * drawn
    m.load_state_dict(weights)
    return m.to(images.dtype).eval()
)";

TEST(Vit, HasTheParametersOfThePublishedNetworks) {
  EXPECT_EQ(parameter_count(*vit("vit_tiny", kImageNet)), 5'717'416);
  EXPECT_EQ(parameter_count(*vit("vit_small", kImageNet)), 22'050'664);
  EXPECT_EQ(parameter_count(*vit("vit_base", kImageNet)), 86'567'656);
}

// Outputs and multiply-adds of the whole ViT-B/16; torchvision publishes 17.56e9 of the latter.
TEST(Vit, IsTorchvisionsVitBase) {
  torch::NoGradGuard no_grad;
  const auto model = vit("vit_base", kImageNet);
  auto inputs = draw_noise(*model, 0.05);
  model->eval();
  const auto images = noise({1, 3, 224, 224}, 0).to(torch::kFloat32);
  Taps taps;
  const auto logits = model->forward(images, &taps);
  EXPECT_NEAR(static_cast<double>(taps.macs()), 17.56e9, 0.005e9);
  EXPECT_EQ(taps.layers().size(), 50U);
  double sharpest = 0;
  for (const auto& layer : taps.attention()) {
    sharpest = std::max(sharpest, layer.weights.max().item<double>());
  }
  EXPECT_GT(sharpest, 0.5) << "attention is flat";
  inputs["images"] = images;
  const auto expected = oracle(std::string(kTorchvision) + R"(
with torch.no_grad():
    out["logits"] = fill(torchvision.models.vit_b_16())(images).numpy()
)",
                               inputs);
  EXPECT_LT(relative_difference(logits, expected.at("logits")), 1e-5);
}

// Logits and the gradients of all parameters.
void expect_torchvisions_gradients(torch::ScalarType type, double tolerance) {
  const auto model = small_vit();
  auto inputs = draw_noise(*model, 0.3);
  model->to(type);
  const auto images = noise({5, 3, 16, 16}, 1).to(type);
  const auto logits = model->forward(images);
  logits.square().sum().backward();
  inputs["images"] = images;
  const auto expected = oracle(std::string(kTorchvision) + R"(
m = torchvision.models.VisionTransformer(image_size=16, patch_size=4, num_layers=2, num_heads=3,
                                         hidden_dim=24, mlp_dim=96, num_classes=7)
m = fill(m).train()
logits = m(images)
logits.square().sum().backward()
gradients = {n: p.grad.numpy() for n, p in m.named_parameters()}
out["logits"] = logits.detach().numpy()
for n in x:
    out[n] = gradients.pop(theirs(n))
assert not gradients, gradients.keys()
)",
                               inputs);
  EXPECT_LT(relative_difference(logits, expected.at("logits")), tolerance);
  for (const auto& item : model->named_parameters()) {
    EXPECT_LT(relative_difference(item.value().grad(), expected.at(item.key())), tolerance)
        << item.key();
  }
}

TEST(Vit, HasTorchvisionsGradients) {
  expect_torchvisions_gradients(torch::kFloat64, 1e-12);
  expect_torchvisions_gradients(torch::kFloat32, 1e-5);
}

TEST(Vit, HasTheParameterNamesOfTimm) {
  std::set<std::string> expected = {"cls_token", "pos_embed"};
  const auto add = [&](const std::string& name) {
    expected.insert(name + ".weight");
    expected.insert(name + ".bias");
  };
  for (const char* name : {"patch_embed.proj", "norm", "head"}) add(name);
  for (const char* block : {"blocks.0.", "blocks.1."}) {
    for (const char* name : {"norm1", "attn.qkv", "attn.proj", "norm2", "mlp.fc1", "mlp.fc2"}) {
      add(std::string(block) + name);
    }
  }
  std::set<std::string> names;
  const auto model = small_vit();
  for (const auto& item : model->named_parameters()) names.insert(item.key());
  for (const auto& item : model->named_buffers()) names.insert(item.key());
  EXPECT_EQ(names, expected);
}

TEST(Vit, TapsItsLayersInOrder) {
  const auto taps = taps_of(*small_vit(), torch::randn({2, 3, 16, 16}));
  std::vector<std::string> names;
  for (const auto& layer : taps.layers()) names.push_back(layer.name);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "patch_embed.proj", "blocks.0.attn.qkv", "blocks.0.attn.proj",
                       "blocks.0.mlp.fc1", "blocks.0.mlp.fc2", "blocks.1.attn.qkv",
                       "blocks.1.attn.proj", "blocks.1.mlp.fc1", "blocks.1.mlp.fc2", "head"}));
  ASSERT_EQ(taps.attention().size(), 2U);
  EXPECT_EQ(taps.attention()[0].name, "blocks.0.attn");
  EXPECT_EQ(taps.attention()[1].name, "blocks.1.attn");
  EXPECT_EQ(taps.attention()[1].logits.sizes(), (torch::IntArrayRef{2, 3, 17, 17}));
  EXPECT_EQ(taps.attention()[1].head_width, 8);
}

TEST(Vit, TapsWhatBecomesOfEachProduct) {
  torch::NoGradGuard no_grad;  // as where it is measured
  const auto model = small_vit();
  draw_noise(*model, 0.3);
  const auto images = torch::randn({2, 3, 16, 16});
  const auto taps = taps_of(*model, images);
  const auto& layers = taps.layers();
  const auto parameters = model->named_parameters();
  // Class token and patches row by row, with their positions.
  const auto patch = torch::conv2d(images, parameters["patch_embed.proj.weight"],
                                   parameters["patch_embed.proj.bias"], 4);
  const auto tokens = layers[0].output;
  ASSERT_EQ(tokens.sizes(), (torch::IntArrayRef{2, 17, 24}));
  EXPECT_EQ(layers[0].stride, 4);
  EXPECT_EQ(layers[0].padding, 0);
  const auto positions = parameters["pos_embed"][0];
  expect_close(tokens[1][0], (parameters["cls_token"][0][0] + positions[0]).detach(), 1e-6);
  expect_close(tokens[1][1 + 4 * 2 + 3], patch[1].select(1, 2).select(1, 3) + positions[12], 1e-5);
  // Residual adds, block by block, and the GELU between.
  expect_close(layers[2].output, tokens + layers[2].pre_activation, 1e-5);
  expect_close(layers[4].output, layers[2].output + layers[4].pre_activation, 1e-5);
  expect_close(layers[6].output, layers[4].output + layers[6].pre_activation, 1e-5);
  expect_close(layers[3].output, torch::gelu(layers[3].pre_activation), 0);
  EXPECT_TRUE(layers[4].input.equal(layers[3].output));
  for (const auto& layer : {layers[1], layers[4], layers[9]}) {
    expect_close(layer.pre_activation, layer.input.matmul(layer.weight.t()) + layer.bias, 1e-4);
  }
}

TEST(Vit, LeavesOutWhatNobodyReadsOfItsLastBlock) {
  const auto model = small_vit();
  draw_noise(*model, 0.3);
  const auto images = torch::randn({2, 3, 16, 16});
  const auto gradients_of = [&](Taps* taps) {
    model->zero_grad();
    const auto logits = model->forward(images, taps);
    logits.square().sum().backward();
    std::vector<torch::Tensor> all = {logits.detach().flatten()};
    for (const auto& parameter : model->parameters()) {
      all.push_back(parameter.grad().clone().flatten());
    }
    return torch::cat(all);
  };
  Taps taps;
  const auto whole = gradients_of(&taps);
  const auto scale = whole.abs().max().item<double>();
  expect_close(gradients_of(nullptr), whole, 1e-5 * scale);
  const auto& last = taps.layers()[8];
  EXPECT_EQ(last.output.sizes(), (torch::IntArrayRef{2, 17, 24}));  // whoever looks sees all
}

TEST(Vit, ReadsTheClassTokenAlone) {
  torch::NoGradGuard no_grad;
  const auto model = small_vit();
  const auto taps = taps_of(*model, torch::randn({2, 3, 16, 16}));
  const auto tokens = taps.layers()[8].output.select(1, 0);
  const auto features = torch::layer_norm(tokens, {24}, {}, {}, 1e-6);
  expect_close(taps.layers()[9].input, features, 1e-5);
  EXPECT_TRUE(model->head()->linear()->weight.is_same(taps.layers()[9].weight));
}

TEST(Vit, StartsAsTimms) {
  torch::manual_seed(0);
  const auto model = vit("vit_tiny", {.classes = 100});
  for (const auto& item : model->named_parameters()) {
    const auto& name = item.key();
    const auto values = item.value().detach();
    const double std_dev = values.numel() > 1 ? values.std().item<double>() : 0;
    if (name == "cls_token") {
      EXPECT_NEAR(std_dev, 1e-6, 0.2e-6);
    } else if (name == "patch_embed.proj.weight" || name == "patch_embed.proj.bias") {
      const double bound = 1 / std::sqrt(3 * 4 * 4);  // the default of convolutions
      EXPECT_LE(values.abs().max().item<double>(), bound);
      EXPECT_NEAR(std_dev, bound / std::sqrt(3), 0.15 * bound);
    } else if (name.find("norm") != std::string::npos) {
      expect_close(values, torch::full_like(values, name.ends_with("weight") ? 1 : 0), 0);
    } else if (name.ends_with("bias")) {
      expect_close(values, torch::zeros_like(values), 0);
    } else {
      EXPECT_NEAR(std_dev, 0.02, 0.001) << name;
      EXPECT_NEAR(values.mean().item<double>(), 0, 0.001) << name;
    }
  }
}

TEST(Vit, CutsImagesIntoPatchesOfTheirSize) {
  const auto tokens = [](const ModelShape& shape, const Values& values) {
    const auto model = vit("vit_tiny", shape, values);
    return model->named_parameters()["pos_embed"].size(1);
  };
  EXPECT_EQ(tokens({}, {}), 1 + 8 * 8);
  EXPECT_EQ(tokens(kImageNet, {}), 1 + 14 * 14);
  EXPECT_EQ(tokens(kImageNet, {{"patch", 32}}), 1 + 7 * 7);
  EXPECT_EQ(tokens({.height = 12, .width = 30}, {{"patch", 6}}), 1 + 2 * 5);
}

TEST(Vit, TakesImagesOfOtherShapes) {
  torch::NoGradGuard no_grad;
  const auto model = vit("vit_tiny", {.channels = 1, .height = 6, .width = 9, .classes = 4},
                         {{"width", 0.1}, {"depth", 1}, {"patch", 3}});
  EXPECT_EQ(model->forward(torch::randn({2, 1, 6, 9})).sizes(), (torch::IntArrayRef{2, 4}));
}

TEST(Vit, RoundsItsWidthToAMultipleOfItsHeads) {
  const auto width_of = [](const std::string& name, double width) {
    const auto model = vit(name, kSmall, {{"width", width}, {"depth", 1}});
    return model->named_parameters()["cls_token"].size(2);
  };
  EXPECT_EQ(width_of("vit_tiny", 1), 192);
  EXPECT_EQ(width_of("vit_tiny", 0.5), 96);
  EXPECT_EQ(width_of("vit_tiny", 0.16), 30);   // 30.72
  EXPECT_EQ(width_of("vit_small", 0.11), 42);  // 42.24
  EXPECT_EQ(width_of("vit_base", 0.015625), 12);
}

TEST(Vit, HasNoBiasInAnyLinearMapIfToldSo) {
  const auto model = small_vit({{"bias", false}});
  for (const auto& item : model->named_parameters()) {
    EXPECT_TRUE(item.key().find("norm") != std::string::npos || !item.key().ends_with("bias"))
        << item.key();
  }
  const auto taps = taps_of(*model, torch::randn({2, 3, 16, 16}));
  for (const auto& layer : taps.layers()) {
    EXPECT_FALSE(layer.bias.defined()) << layer.name;
  }
}

TEST(Vit, HandsItsSettingsToAttention) {
  const auto images = torch::randn({2, 3, 16, 16});
  torch::manual_seed(0);
  const auto plain = small_vit();
  draw_noise(*plain, 0.3);
  const auto logits = taps_of(*plain, images).attention()[0].logits;
  const auto warm = small_vit({{"attention_temperature", 4}});
  draw_noise(*warm, 0.3);
  expect_close(taps_of(*warm, images).attention()[0].logits, logits / 4, 1e-4);

  const auto sparse = small_vit({{"attention", "sparsemax"}});
  draw_noise(*sparse, 0.3);
  const auto weights = taps_of(*sparse, images).attention()[1].weights;
  EXPECT_GT((weights == 0).sum().item<int64_t>(), weights.numel() / 2);
  expect_close(weights.sum(-1), torch::ones({2, 3, 17}), 1e-6);

  const auto top = small_vit({{"attention", "top_k"}, {"attention_k", 3}});
  EXPECT_EQ((taps_of(*top, images).attention()[1].weights > 0).sum(-1).max().item<int64_t>(), 3);
}

TEST(Vit, DropsInTrainingOnly) {
  torch::NoGradGuard no_grad;
  const auto model = small_vit({{"dropout", 0.3}});
  draw_noise(*model, 0.3);
  const auto images = torch::randn({2, 3, 16, 16});
  model->train();
  EXPECT_FALSE(model->forward(images).equal(model->forward(images)));
  model->eval();
  const auto logits = model->forward(images);
  EXPECT_TRUE(logits.equal(model->forward(images)));
  const auto without = small_vit();
  draw_noise(*without, 0.3);
  EXPECT_TRUE(logits.equal(without->forward(images)));
}

TEST(Vit, LearnsInHalfThePrecisionAsWell) {
  const auto model = small_vit();
  model->to(torch::kBFloat16);
  const auto logits = model->forward(torch::randn({2, 3, 16, 16}).to(torch::kBFloat16));
  EXPECT_EQ(logits.scalar_type(), torch::kBFloat16);
  logits.square().sum().backward();
  for (const auto& item : model->named_parameters()) {
    EXPECT_TRUE(torch::isfinite(item.value().grad()).all().item<bool>()) << item.key();
  }
}

TEST(Vit, RejectsSettingsOutOfRange) {
  const auto message_of = [](const std::string& key, const Value& value) {
    return error_of([&] { vit("vit_tiny", kSmall, {{key, value}}); });
  };
  EXPECT_EQ(message_of("patch", 5),
            "model.patch: must divide both sides of the images, which are 16 x 16, got 5");
  EXPECT_EQ(message_of("patch", 0),
            "model.patch: must divide both sides of the images, which are 16 x 16, got 0");
  EXPECT_EQ(message_of("patch", 32),
            "model.patch: must divide both sides of the images, which are 16 x 16, got 32");
  EXPECT_EQ(message_of("width", 0), "model.width: must be in [0.015625, 16], got 0");
  EXPECT_EQ(message_of("width", 17), "model.width: must be in [0.015625, 16], got 17");
  EXPECT_EQ(message_of("depth", 0), "model.depth: must be from 1 to 1000, got 0");
  EXPECT_EQ(message_of("dropout", 1), "model.dropout: must be in [0, 1), got 1");
  EXPECT_EQ(message_of("attention_temperature", -1),
            "model.attention_temperature: temperature must be a finite number above 0, got -1");
}

}  // namespace kelvin::vit_test
