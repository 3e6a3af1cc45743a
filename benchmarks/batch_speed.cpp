// Assembles batches of CIFAR-10 with crop and flip on one thread; benchmarks/batch_speed.py runs
// it.
//   kelvin_batch_speed DATA speed EPOCHS    prints images per second
//   kelvin_batch_speed DATA dump FILE.npz   writes a batch and how each image was shown

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <chrono>
#include <iostream>
#include <string>

#include "benchmarks/tool_process.h"
#include "kelvin/data/batches.h"
#include "kelvin/formats/npz_file.h"

namespace {

constexpr int64_t kBatchSize = 128;
constexpr uint64_t kSeed = 1;

template <class Number>
std::string bytes_of(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

void dump(const kelvin::BatchMaker& batches, const kelvin::Images& images, const char* path) {
  const auto order = kelvin::epoch_order(kSeed, 0, images.size());
  const std::vector<int64_t> indices(order.begin(), order.begin() + kBatchSize);
  const auto batch = batches.make(images, indices).images.contiguous();
  std::vector<int64_t> views;
  for (const auto index : indices) {
    auto stream = kelvin::view_stream(kSeed, 0, index);
    const auto view = kelvin::draw_view(kelvin::Augmentation::crop_flip, stream);
    views.insert(views.end(), {index, view.shift_x, view.shift_y, view.is_flipped ? 1 : 0});
  }
  const std::string floats(static_cast<const char*>(batch.data_ptr()), batch.nbytes());
  kelvin::write_npz(path, {{"batch", {"f4", batch.sizes().vec(), floats}},
                           {"views", {"i8", {kBatchSize, 4}, bytes_of(views)}}});
}

double images_per_second(const kelvin::BatchMaker& batches, const kelvin::Images& images,
                         int64_t epochs) {
  const auto start = std::chrono::steady_clock::now();
  int64_t count = 0;
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    const auto order = kelvin::epoch_order(kSeed, epoch, images.size());
    for (auto at = order.begin(); order.end() - at >= kBatchSize; at += kBatchSize) {
      count += batches.make(images, {at, at + kBatchSize}, epoch).labels.size(0);
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return static_cast<double>(count) / seconds.count();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) {
    std::cerr << "usage: kelvin_batch_speed DATA speed EPOCHS | DATA dump FILE.npz\n";
    return 2;
  }
  kelvin::become_tool_process(arguments);
  at::set_num_threads(1);
  const auto dataset = kelvin::load_dataset("cifar10", {.data_folder = arguments[1]});
  const kelvin::BatchMaker batches(
      dataset.mean, dataset.std_dev,
      {.augmentation = kelvin::Augmentation::crop_flip, .seed = kSeed, .on_all_cores = false});
  if (std::string(arguments[2]) == "dump") {
    dump(batches, dataset.train, arguments[3]);
  } else {
    std::cout << images_per_second(batches, dataset.train, std::stoll(arguments[3])) << "\n";
  }
}
