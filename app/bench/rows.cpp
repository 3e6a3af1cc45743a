#include "app/bench/rows.h"

#include <fmt/format.h>

namespace kelvin {
namespace {

constexpr int64_t kBatchSize = 128;

// A setting that a sweep goes over.
struct Variation {
  std::string key;
  std::string label;
  std::vector<int64_t> values;
};

Config settings_of(const std::string& model, const std::string& precision,
                   const BenchChoice& choice) {
  Config config;
  config.set("data.name", "glyphs10");  // ten classes, 3 x 32 x 32; its images are not used
  config.set("model.name", model);
  // What is left out would differ from what PyTorch leaves out.
  if (model.starts_with("vgg")) config.set("model.dropout", 0.0);
  config.set("train.batch_size", choice.batch_size > 0 ? choice.batch_size : kBatchSize);
  config.set("train.precision", precision);
  config.set("train.plain", choice.uses_reference_ops);
  config.set("train.optimizer", "sgd");
  config.set("train.lr", 0.05);
  config.set("train.momentum", 0.9);
  config.set("train.nesterov", true);
  config.set("train.weight_decay", 5e-4);
  config.set("train.schedule", "constant");
  config.set("train.warmup_epochs", 0.0);
  for (const auto& assignment : choice.overrides) config.apply_override(assignment);
  return config;
}

std::vector<std::string> precisions_of(const BenchChoice& choice) {
  if (!choice.precision.empty()) return {choice.precision};
  if (!choice.model.empty()) return {"fp32"};
  return {"fp32", "bf16"};
}

void add_variations(std::vector<BenchRow>& rows, const std::string& model,
                    const Variation& variation, const BenchChoice& choice) {
  const auto precision = choice.precision.empty() ? "fp32" : choice.precision;
  for (const auto value : variation.values) {
    auto settings = settings_of(model, precision, choice);
    settings.set(variation.key, value);
    rows.push_back({.name = fmt::format("{} {} {}", model, variation.label, value),
                    .settings = std::move(settings)});
  }
}

}  // namespace

std::vector<BenchRow> bench_rows(const BenchChoice& choice) {
  std::vector<std::string> models = {"mlp", "resnet20", "resnet18", "vgg19_bn", "vit_small"};
  if (!choice.model.empty()) models = {choice.model};
  std::vector<BenchRow> rows;
  for (const auto& model : models) {
    for (const auto& precision : precisions_of(choice)) {
      rows.push_back({.name = model, .settings = settings_of(model, precision, choice)});
    }
  }
  return rows;
}

std::vector<BenchRow> sweep_rows(const BenchChoice& choice) {
  std::vector<BenchRow> rows;
  const auto model = choice.model.empty() ? "mlp" : choice.model;
  add_variations(
      rows, model,
      {.key = "train.batch_size", .label = "batch", .values = {32, 64, 128, 256, 512, 1024}},
      choice);
  if (!choice.model.empty()) return rows;
  add_variations(rows, "mlp", {.key = "model.depth", .label = "depth", .values = {4, 8, 16, 32}},
                 choice);
  add_variations(rows, "mlp",
                 {.key = "model.width", .label = "width", .values = {256, 512, 1024, 2048, 4096}},
                 choice);
  const auto precision = choice.precision.empty() ? "fp32" : choice.precision;
  for (const char* resnet : {"resnet20", "resnet32", "resnet44", "resnet56"}) {
    rows.push_back({.name = resnet, .settings = settings_of(resnet, precision, choice)});
  }
  return rows;
}

}  // namespace kelvin
