#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <stdexcept>

#include "kelvin/model/model.h"

// What taps cost when nobody asks for them: a model's forward pass beside the same operations
// written without any.  Run with --benchmark_enable_random_interleaving=true.

namespace kelvin {
namespace {

std::shared_ptr<Model> built(const std::string& name) {
  Settings settings("model", {});
  torch::manual_seed(0);
  auto model = models().find(name).build({}, settings);
  model->eval();
  return model;
}

torch::Tensor some_images() {
  torch::manual_seed(1);
  return torch::randn({128, 3, 32, 32}).contiguous(torch::MemoryFormat::ChannelsLast);
}

using Named = torch::OrderedDict<std::string, torch::Tensor>;

torch::Tensor normalised(const torch::Tensor& maps, const Named& parameters, const Named& buffers,
                         const std::string& name) {
  return torch::batch_norm(maps, parameters[name + ".weight"], parameters[name + ".bias"],
                           buffers[name + ".running_mean"], buffers[name + ".running_var"],
                           /*training=*/false, 0.1, 1e-5, /*cudnn_enabled=*/true);
}

// ResNet-20 with padded shortcuts.
torch::Tensor plain_resnet20(const torch::Tensor& images, const Named& parameters,
                             const Named& buffers) {
  const auto convolved = [&](const torch::Tensor& maps, const std::string& name, int64_t stride) {
    return torch::conv2d(maps, parameters[name + ".weight"], {}, stride, 1);
  };
  auto maps = torch::relu(normalised(convolved(images, "conv1", 1), parameters, buffers, "bn1"));
  for (int64_t stage = 1; stage <= 3; ++stage) {
    for (int64_t block = 0; block < 3; ++block) {
      const auto name = "layer" + std::to_string(stage) + "." + std::to_string(block);
      const int64_t stride = stage > 1 && block == 0 ? 2 : 1;
      auto out = torch::relu(
          normalised(convolved(maps, name + ".conv1", stride), parameters, buffers, name + ".bn1"));
      out = normalised(convolved(out, name + ".conv2", 1), parameters, buffers, name + ".bn2");
      auto shortcut = maps;
      if (stride == 2) {
        const auto pixels = torch::indexing::Slice(torch::indexing::None, torch::indexing::None, 2);
        const int64_t added = maps.size(1) / 2;
        shortcut = torch::constant_pad_nd(
            maps.index({torch::indexing::Slice(), torch::indexing::Slice(), pixels, pixels}),
            {0, 0, 0, 0, added, added});
      }
      maps = torch::relu(out + shortcut);
    }
  }
  return torch::linear(maps.mean({2, 3}), parameters["fc.weight"], parameters["fc.bias"]);
}

void resnet20_without_taps(benchmark::State& state) {
  torch::NoGradGuard no_grad;
  const auto model = built("resnet20");
  const auto images = some_images();
  for (auto iteration : state) benchmark::DoNotOptimize(model->forward(images));
}
BENCHMARK(resnet20_without_taps)->Unit(benchmark::kMillisecond);

void resnet20_written_plainly(benchmark::State& state) {
  torch::NoGradGuard no_grad;
  const auto model = built("resnet20");
  const auto images = some_images();
  const auto parameters = model->named_parameters();
  const auto buffers = model->named_buffers();
  if (!model->forward(images).equal(plain_resnet20(images, parameters, buffers))) {
    throw std::runtime_error("the two networks differ");
  }
  for (auto iteration : state) {
    benchmark::DoNotOptimize(plain_resnet20(images, parameters, buffers));
  }
}
BENCHMARK(resnet20_written_plainly)->Unit(benchmark::kMillisecond);

void resnet20_with_taps(benchmark::State& state) {
  torch::NoGradGuard no_grad;
  const auto model = built("resnet20");
  const auto images = some_images();
  for (auto iteration : state) {
    Taps taps;
    benchmark::DoNotOptimize(model->forward(images, &taps));
  }
}
BENCHMARK(resnet20_with_taps)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kelvin
