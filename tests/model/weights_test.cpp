#include "kelvin/model/weights.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>
#include <limits>
#include <regex>
#include <string>

#include "kelvin/formats/safetensors_file.h"
#include "kelvin/model/tensors_file.h"
#include "tests/support/built_model.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/python.h"

namespace kelvin::weights_test {

std::shared_ptr<Model> small_model(uint64_t seed, int64_t classes = 10) {
  return built_model("resnet10", {{"width", 0.125}}, {.classes = classes}, seed);
}

std::shared_ptr<Model> small_vit(int64_t side, uint64_t seed) {
  return built_model("vit_tiny", {{"depth", 1}, {"patch", 4}, {"width", 0.125}},
                     {.height = side, .width = side}, seed);
}

class Weights : public testing::Test {
 protected:
  std::string path() const { return folder_ / "model.safetensors"; }

  // What loading says when `change` was done to the tensors of a good file.
  template <class Change>
  std::string error_after(const Change& change) const {
    save_weights(path(), *small_model(1));
    auto tensors = read_tensors(path());
    change(tensors);
    write_safetensors(path(), tensors);
    return error_of_loading(*small_model(2));
  }

  std::string error_of_loading(Model& model, const LoadOptions& options = {}) const {
    const auto before = model.parameters().front().clone();
    auto message = error_of([&] { load_weights(path(), model, options); });
    EXPECT_TRUE(model.parameters().front().equal(before)) << "a refused file changed the model";
    EXPECT_TRUE(message.starts_with(path() + ": ")) << message;
    return message.substr(std::min(message.size(), path().size() + 2));
  }

  TemporaryFolder folder_;
};

TEST_F(Weights, AreTheSameAfterLoading) {
  const auto model = small_model(1);
  model->train();
  model->forward(torch::randn({4, 3, 32, 32}));  // moves the running statistics
  save_weights(path(), *model);
  const auto other = small_model(2);
  load_weights(path(), *other);
  model->eval();
  const auto images = torch::randn({2, 3, 32, 32});
  EXPECT_TRUE(other->forward(images).equal(model->forward(images)));
  save_weights(folder_ / "again", *other);
  EXPECT_EQ(whole_file(folder_ / "again"), whole_file(path()));
}

TEST_F(Weights, MayLackTheCountsOfBatches) {
  save_weights(path(), *small_model(1));
  auto tensors = read_tensors(path());
  std::erase_if(tensors, [](const auto& pair) { return pair.first.ends_with("tracked"); });
  write_safetensors(path(), tensors);
  const auto other = small_model(2);
  load_weights(path(), *other);
  EXPECT_TRUE(other->parameters().front().equal(small_model(1)->parameters().front()));
}

TEST_F(Weights, MustAllBeThere) {
  EXPECT_EQ(error_after([](auto& tensors) { tensors.erase("fc.bias"); }),
            "has not 1 tensor that the model needs ('fc.bias'); are these weights of another "
            "architecture?");
}

TEST_F(Weights, MustBelongToTheModel) {
  EXPECT_EQ(error_after([](auto& tensors) { tensors["extra"] = torch::zeros({1}); }),
            "has 1 tensor that the model has not ('extra'); are these weights of another "
            "architecture?");
}

TEST_F(Weights, MustHaveTheModelsShape) {
  EXPECT_EQ(error_after([](auto& tensors) { tensors["bn1.bias"] = torch::zeros({9}); }),
            "'bn1.bias' must be [8], is [9]");
  EXPECT_EQ(error_after([](auto& tensors) { tensors["fc.bias"] = torch::zeros({9}); }),
            "'fc.bias' must be [10], is [9]; --reset-head leaves it out and draws a new head");
}

TEST_F(Weights, MustFitTheModelsType) {
  EXPECT_EQ(
      error_after([](auto& tensors) { tensors["fc.bias"] = torch::zeros({10}, torch::kInt64); }),
      "'fc.bias' must be Float, is Long");
  EXPECT_EQ(error_after([](auto& tensors) {
              tensors["fc.bias"] = torch::full({10}, 1e300, torch::kFloat64);
            }),
            "'fc.bias' must fit Float, holds a number beyond it");
  save_weights(path(), *small_model(1));
  auto tensors = read_tensors(path());
  tensors["fc.bias"] = torch::full({10}, 1.5, torch::kFloat16);
  write_safetensors(path(), tensors);
  const auto other = small_model(2);
  load_weights(path(), *other);
  EXPECT_EQ(other->named_parameters()["fc.bias"].min().item<double>(), 1.5);
}

// Who averages a state dict turns its counters into floats.
TEST_F(Weights, MayHaveCountersOfAnotherType) {
  save_weights(path(), *small_model(1));
  auto tensors = read_tensors(path());
  for (auto& [name, tensor] : tensors) {
    if (name.ends_with("num_batches_tracked")) tensor = torch::full({}, 7, torch::kFloat32);
  }
  write_safetensors(path(), tensors);
  const auto other = small_model(2);
  load_weights(path(), *other);
  EXPECT_EQ(other->named_buffers()["bn1.num_batches_tracked"].item<int64_t>(), 7);
}

TEST_F(Weights, MustBeFinite) {
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(error_after([&](auto& tensors) { tensors["conv1.weight"][0][0][0][0] = value; }),
              "'conv1.weight' must be finite, holds NaN or infinity");
  }
}

TEST_F(Weights, OfAnotherArchitectureAreRefused) {
  save_weights(path(), *built_model("resnet18", {{"width", 0.125}}));
  EXPECT_EQ(error_of_loading(*small_model(2)),
            "has 48 tensors that the model has not ('layer1.1.bn1.bias', "
            "'layer1.1.bn1.num_batches_tracked', 'layer1.1.bn1.running_mean' and 45 more); layer1 "
            "has 2 blocks where the model has 1, layer2 has 2 blocks where the model has 1, layer3 "
            "has 2 blocks where the model has 1, layer4 has 2 blocks where the model has 1");
  save_weights(path(), *built_model("mlp", {{"width", 4}}));
  const auto message = error_of_loading(*small_model(2));
  EXPECT_TRUE(message.starts_with("has ")) << message;
  EXPECT_NE(message.find(", and has not "), std::string::npos) << message;
  EXPECT_TRUE(message.ends_with("; are these weights of another architecture?")) << message;
}

// Renaming tables are tried on names of any file: none may take them long or crash.
TEST_F(Weights, WithNamesOfAStrangerAreRefusedInOneLine) {
  const auto named = [&](const std::string& name) {
    std::ofstream(path(), std::ios::binary) << safetensors_bytes(
        {.tensors = {{.name = name, .dtype = "U8", .shape = {1}, .bytes = "x"}}});
    return error_of_loading(*built_model("mlp", {{"width", 4}, {"depth", 1}}));
  };
  const auto digits = "encoder.layers.encoder_layer_" + std::string(300'000, '1');
  EXPECT_NE(named(digits).find("names must have at most 1024 bytes"), std::string::npos);
  EXPECT_NE(named(digits.substr(0, 1000)).find("tensors that the model needs ('layers.0.bias', "),
            std::string::npos);
  save_weights(path(), *small_model(1));
  EXPECT_EQ(error_after([](auto& tensors) { tensors["\x1b[2J\r"] = torch::zeros({1}); }),
            "has 1 tensor that the model has not ('?[2J?'); are these weights of another "
            "architecture?");
}

TEST_F(Weights, WithoutPositionsAreRefused) {
  save_weights(path(), *small_vit(16, 1));
  auto tensors = read_tensors(path());
  tensors["pos_embed"] = torch::zeros({1, 0, 24});
  write_safetensors(path(), tensors);
  EXPECT_EQ(error_of_loading(*small_vit(16, 1)), "'pos_embed' must be [1, 17, 24], is [1, 0, 24]");
}

// A whole state dict under the names of another source, each by its inverse.
class RenamedWeights : public Weights {
 protected:
  using Renaming = std::pair<std::string, std::string>;

  void expect_loads(const std::string& name, const Values& values,
                    const std::vector<Renaming>& renamings) const {
    const auto model = built_model(name, values);
    save_weights(path(), *model);
    NamedTensors renamed;
    size_t changed = 0;
    for (const auto& [ours, tensor] : read_tensors(path())) {
      auto theirs = ours;
      for (const auto& [pattern, replacement] : renamings) {
        theirs = std::regex_replace(theirs, std::regex(pattern), replacement);
      }
      if (theirs != ours) ++changed;
      renamed[theirs] = tensor;
    }
    EXPECT_GT(changed, 1U);
    write_safetensors(path(), renamed);
    const auto other = built_model(name, values, {}, /*seed=*/9);
    load_weights(path(), *other);
    const auto images = torch::randn({1, 3, 32, 32});
    EXPECT_TRUE(other->forward(images).equal(model->forward(images)));
  }
};

TEST_F(RenamedWeights, OfKuangliuLoad) {
  expect_loads("resnet50", {{"width", 0.125}},
               {{"^fc\\.", "linear."}, {"\\.downsample\\.", ".shortcut."}});
}

TEST_F(RenamedWeights, OfWeiaicunzaiLoad) {
  expect_loads("resnet18", {{"width", 0.125}},
               {{"\\.conv1\\.", ".residual_function.0."},
                {"\\.bn1\\.", ".residual_function.1."},
                {"\\.conv2\\.", ".residual_function.3."},
                {"\\.bn2\\.", ".residual_function.4."},
                {"\\.downsample\\.", ".shortcut."},
                {"^conv1\\.", "conv1.0."},
                {"^bn1\\.", "conv1.1."},
                {"^layer1\\.", "conv2_x."},
                {"^layer2\\.", "conv3_x."},
                {"^layer3\\.", "conv4_x."},
                {"^layer4\\.", "conv5_x."}});
}

TEST_F(RenamedWeights, OfChengyangfuLoad) {
  for (const char* name : {"vgg11", "vgg16_bn"}) {
    expect_loads(name, {{"width", 0.125}},
                 {{"^features\\.", "features.module."},
                  {"^classifier\\.0\\.", "classifier.1."},
                  {"^classifier\\.3\\.", "classifier.4."}});
  }
}

TEST_F(RenamedWeights, OfTorchvisionsVisionTransformerLoad) {
  const auto images = torch::randn({2, 3, 32, 32}, at::make_generator<at::CPUGeneratorImpl>(3));
  const auto expected = oracle(
      "import torch\nfrom torchvision.models import VisionTransformer\n"
      "torch.manual_seed(0)\n"
      "m = VisionTransformer(32, 4, 2, 3, 192, 768, num_classes=10)\n"
      "torch.nn.init.normal_(m.heads.head.weight)\n"
      "m.eval()\ntorch.save(m.state_dict(), '" +
          path() + "')\nout['logits'] = m(torch.tensor(x['images'])).detach()\n",
      {{"images", images}});
  const auto model = built_model("vit_tiny", {{"depth", 2}});
  load_weights(path(), *model);
  EXPECT_TRUE(torch::allclose(model->forward(images), expected.at("logits"), 1e-4, 1e-4));
}

TEST_F(Weights, MayHaveAnotherHead) {
  save_weights(path(), *small_model(1));
  const auto other = small_model(2, 100);
  EXPECT_EQ(error_of_loading(*other),
            "'fc.bias' must be [100], is [10]; --reset-head leaves it out and draws a new head");
  load_weights(path(), *other, {.reset_head = true});
  EXPECT_TRUE(other->parameters().front().equal(small_model(1)->parameters().front()));
  EXPECT_TRUE(other->named_parameters()["fc.weight"].equal(
      small_model(2, 100)->named_parameters()["fc.weight"]));
}

TEST_F(Weights, MayHaveNoHeadIfItIsReset) {
  save_weights(path(), *small_model(1));
  auto tensors = read_tensors(path());
  std::erase_if(tensors, [](const auto& pair) { return pair.first.starts_with("fc."); });
  write_safetensors(path(), tensors);
  load_weights(path(), *small_model(2), {.reset_head = true});
}

TEST_F(Weights, OfAnotherGridOfPatchesAreInterpolatedAsTorchDoes) {
  const auto small = small_vit(16, 1);
  save_weights(path(), *small);
  const auto large = small_vit(28, 2);
  load_weights(path(), *large);
  const auto before = small->named_parameters()["pos_embed"].detach();
  const auto after = large->named_parameters()["pos_embed"].detach();
  const auto expected = oracle(R"(
import torch
grid = torch.tensor(x['positions'])[:, 1:].reshape(1, 4, 4, -1).permute(0, 3, 1, 2)
grown = torch.nn.functional.interpolate(grid, size=(7, 7), mode='bicubic', align_corners=False)
out['positions'] = np.ascontiguousarray(grown.permute(0, 2, 3, 1).reshape(1, 49, -1).numpy())
)",
                               {{"positions", before}});
  EXPECT_TRUE(after.slice(1, 0, 1).equal(before.slice(1, 0, 1)));  // the class token's
  EXPECT_TRUE(torch::allclose(after.slice(1, 1), expected.at("positions"), 1e-5, 1e-7));
  EXPECT_TRUE(large->named_parameters()["cls_token"].equal(small->named_parameters()["cls_token"]));
}

TEST_F(Weights, OfAGridThatIsNoSquareMustHaveItsShape) {
  const auto oblong = built_model("vit_tiny", {{"depth", 1}, {"patch", 4}, {"width", 0.125}},
                                  {.height = 16, .width = 8});
  save_weights(path(), *oblong);
  EXPECT_EQ(error_of_loading(*small_vit(16, 1)), "'pos_embed' must be [1, 17, 24], is [1, 9, 24]");
}

TEST_F(Weights, OfATrainingScriptsCheckpointLoad) {
  python_output(R"(
import sys, torch, torchvision
torch.manual_seed(0)
m = torchvision.models.resnet18(num_classes=10)
torch.save({'epoch': 3, 'state_dict': torch.nn.DataParallel(m).state_dict(),
            'optimizer': torch.optim.SGD(m.parameters(), 0.1, momentum=0.9).state_dict()}, sys.argv[1])
torch.save(m.state_dict(), sys.argv[2], _use_new_zipfile_serialization=False)
)",
                {path(), folder_ / "legacy.pth"});
  const auto first = built_model("resnet18", {{"stem", "imagenet"}});
  const auto second = built_model("resnet18", {{"stem", "imagenet"}}, {}, 1);
  load_weights(path(), *first);
  load_weights(folder_ / "legacy.pth", *second);
  const auto images = torch::randn({1, 3, 64, 64});
  EXPECT_TRUE(first->forward(images).equal(second->forward(images)));
}

// Published weights are under the names of their source: a deeper network of it is told by its
// blocks, not by names that were not translated.
TEST_F(RenamedWeights, OfAnotherDepthAreToldByTheirBlocks) {
  const auto published = [&](const std::string& name) {
    save_weights(path(), *built_model(name));
    NamedTensors renamed;
    for (const auto& [ours, tensor] : read_tensors(path())) {
      renamed["module." + std::regex_replace(ours, std::regex("^fc\\."), "linear.")] = tensor;
    }
    write_safetensors(path(), renamed);
  };
  published("resnet56");
  EXPECT_EQ(error_of_loading(*built_model("resnet44")),
            "has 72 tensors that the model has not ('layer1.7.bn1.bias', "
            "'layer1.7.bn1.num_batches_tracked', 'layer1.7.bn1.running_mean' and 69 more); layer1 "
            "has 9 blocks where the model has 7, layer2 has 9 blocks where the model has 7, layer3 "
            "has 9 blocks where the model has 7");
  published("resnet44");
  EXPECT_EQ(error_of_loading(*built_model("resnet56")),
            "has not 60 tensors that the model needs ('layer1.7.bn1.bias', "
            "'layer1.7.bn1.running_mean', 'layer1.7.bn1.running_var' and 57 more); layer1 has 7 "
            "blocks where the model has 9, layer2 has 7 blocks where the model has 9, layer3 has 7 "
            "blocks where the model has 9");
}

// As timm and torchvision's references save them: arguments, scalars of NumPy, an average beside
// the weights, all in float64.
TEST_F(Weights, OfWholeCheckpointsLoadAndSayWhichCopyTheyAre) {
  python_output(R"(
import argparse, collections, sys, numpy as np, torch, torchvision
torch.manual_seed(0)
m = torchvision.models.resnet18(num_classes=10).double()
o = torch.optim.SGD(m.parameters(), 0.1, momentum=0.9)
s = torch.optim.lr_scheduler.StepLR(o, 3)
average = collections.OrderedDict((k, v * 2 if v.is_floating_point() else v)
                                  for k, v in m.state_dict().items())
args = argparse.Namespace(lr=0.1, device=torch.device('cpu'))
torch.save({'epoch': 3, 'arch': 'resnet18', 'state_dict': m.state_dict(), 'args': args,
            'optimizer': o.state_dict(), 'state_dict_ema': average, 'metric': np.float64(76.5)},
           sys.argv[1] + '/timm.pth')
torch.save({'model': torch.nn.DataParallel(m).state_dict(), 'lr_scheduler': s.state_dict(),
            'model_ema': {'n_averaged': torch.tensor(3),
                          **{'module.' + k: v for k, v in average.items()}}, 'args': args},
           sys.argv[1] + '/torchvision.pth', _use_new_zipfile_serialization=False)
torch.save({'state_dict': {'model.' + k: v for k, v in m.state_dict().items()},
            'hyper_parameters': args, 'callbacks': {argparse.Namespace: {'a': 1}}},
           sys.argv[1] + '/lightning.ckpt')
torch.save(m.float().state_dict(), sys.argv[1] + '/plain.pth')
)",
                {folder_.path().string()});
  const auto weights = [&](const std::string& name, const std::string& part, std::string& said) {
    const auto model = built_model("resnet18", {{"stem", "imagenet"}});
    said = load_weights(folder_ / name, *model, {.part = part});
    return weights_of(*model).at("layer3.1.conv2.weight").clone();
  };
  std::string said;
  const auto plain = weights("plain.pth", "", said);
  EXPECT_EQ(said, "");
  EXPECT_TRUE(weights("lightning.ckpt", "", said).equal(plain));
  EXPECT_EQ(said, "");
  EXPECT_TRUE(weights("timm.pth", "", said).equal(plain));
  EXPECT_EQ(said, (folder_ / "timm.pth") +
                      ": the weights taken are those of 'state_dict'; it also holds "
                      "'state_dict_ema', which init.pretrained_part would take");
  EXPECT_TRUE(weights("timm.pth", "state_dict_ema", said).equal(plain * 2));
  EXPECT_NE(said.find("those of 'state_dict_ema'; it also holds 'state_dict'"), std::string::npos);
  EXPECT_TRUE(weights("torchvision.pth", "", said).equal(plain));
  EXPECT_NE(said.find("those of 'model'; it also holds 'model_ema'"), std::string::npos) << said;
  EXPECT_TRUE(weights("torchvision.pth", "model_ema", said).equal(plain * 2));
  EXPECT_EQ(error_of([&] { weights("timm.pth", "ema", said); }),
            (folder_ / "timm.pth") +
                ": has no 'ema'; init.pretrained_part must be a part of the file that holds "
                "tensors");
}

TEST_F(Weights, AreKnownToBeDamagedByTheirChecksum) {
  save_weights(path(), *small_model(1));
  auto bytes = whole_file(path());
  bytes[bytes.size() - 1000] ^= 1;
  std::ofstream(path(), std::ios::binary) << bytes;
  EXPECT_NE(
      error_of_loading(*small_model(2)).find("do not have the checksum that kelvin gave them"),
      std::string::npos);
}

}  // namespace kelvin::weights_test
