// Every registered detector on made features; benchmarks/detector_speed.py runs it.
//   kelvin_detector_speed FOLDER TRAIN ID OOD WIDTH CLASSES
// writes features, logits and labels of training, ID and OOD samples and the classifier to FOLDER,
// prints each detector's seconds to fit and to score both, and writes its scores beside them.

#include <torch/torch.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "benchmarks/tool_process.h"
#include "kelvin/core/check.h"
#include "kelvin/measures/detectors/detector.h"

namespace {

using kelvin::Record;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Features as of a trained network after its last ReLU: around the means of the classes, scattered
// by a power law, with a small noise in all directions.
class Maker {
 public:
  Maker(int64_t width, int64_t classes) : width_(width), classes_(classes) {
    means_ = normal({classes, width}) * 1.5;
    directions_ = std::get<0>(torch::linalg_qr(normal({width, width})));
    scales_ = torch::arange(1, width + 1).pow(-1.).mul(4 * std::sqrt(classes));
    weight_ = means_ / means_.norm(2, 1, /*keepdim=*/true);
    bias_ = normal({classes}) / 10;
  }

  // `share` of the mean of their class, and more of what all have in common.
  Record make(int64_t count, double share) {
    Record record;
    record.classes = classes_;
    record.labels = torch::randint(classes_, {count}, generator_, torch::kInt64);
    const auto scatter = (normal({count, width_}) * scales_).matmul(directions_);
    const auto centre = share * means_.index_select(0, record.labels);
    record.features =
        (centre + scatter * (2 - share) + 0.02 * normal({count, width_}) + 0.5).relu();
    record.weight = weight_;
    record.bias = bias_;
    record.logits = record.features.matmul(weight_.t()) + bias_;
    return record;
  }

 private:
  torch::Tensor normal(const std::vector<int64_t>& shape) {
    return torch::randn(shape, generator_);
  }

  int64_t width_;
  int64_t classes_;
  torch::Generator generator_ = at::make_generator<at::CPUGeneratorImpl>(0);
  torch::Tensor means_;
  torch::Tensor directions_;
  torch::Tensor scales_;
  torch::Tensor weight_;
  torch::Tensor bias_;
};

void write(const std::filesystem::path& path, const torch::Tensor& tensor) {
  const auto values = tensor.contiguous();
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(values.data_ptr()),
             static_cast<std::streamsize>(values.nbytes()));
  kelvin::check(file.good(), path.string(), ": cannot be written");
}

void write_record(const std::filesystem::path& folder, const std::string& name,
                  const Record& record) {
  write(folder / (name + "_features.f32"), record.features);
  write(folder / (name + "_logits.f32"), record.logits);
  write(folder / (name + "_labels.i64"), record.labels);
}

void run_detector(const std::string& name, const Record& train, const Record& id, const Record& ood,
                  const std::filesystem::path& folder) {
  kelvin::Settings settings("detector." + name, {});
  const auto detector = kelvin::detectors().find(name).make({}, settings);
  const double begin = now();
  detector->fit(train);
  const double fitted = now();
  const auto scores = torch::cat({detector->score(id), detector->score(ood)});
  std::cout << "detector " << name << " " << fitted - begin << " " << now() - fitted << std::endl;
  write(folder / (name + "_scores.f64"), scores);
}

int run(const std::vector<std::string>& words) {
  if (words.size() != 6) {
    std::cerr << "usage: kelvin_detector_speed FOLDER TRAIN ID OOD WIDTH CLASSES\n";
    return 2;
  }
  const torch::InferenceMode no_gradients;
  const std::filesystem::path folder = words[0];
  Maker maker(std::stoll(words[4]), std::stoll(words[5]));
  const auto train = maker.make(std::stoll(words[1]), 1);
  const auto id = maker.make(std::stoll(words[2]), 1);
  auto ood = maker.make(std::stoll(words[3]), 0.4);
  ood.ood = "made";
  write_record(folder, "train", train);
  write_record(folder, "id", id);
  write_record(folder, "ood", ood);
  write(folder / "weight.f32", train.weight);
  write(folder / "bias.f32", train.bias);
  for (const auto& name : kelvin::detectors().names()) run_detector(name, train, id, ood, folder);
  return 0;
}

}  // namespace

int main(int count, char** arguments) { return kelvin::run_as_tool(count, arguments, run); }
