#include "kelvin/experiment/retrieval/retrieval_settings.h"

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/core/text.h"
#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/ops/simplex_map.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {
namespace {

constexpr auto kRetrieval = "retrieval";

void read_retrieval_training(Settings& settings, RetrievalTraining& training) {
  settings.read("steps", training.steps);
  settings.read("batch_size", training.batch_size);
  settings.read("least_items", training.least);
  settings.read("most_items", training.most);
  settings.read("lr", training.learning_rate);
  settings.read("weight_decay", training.weight_decay);
  check_count(settings.full_name("steps"), training.steps, 1);
  check_count(settings.full_name("batch_size"), training.batch_size, 1);
  check_count(settings.full_name("least_items"), training.least, 1);
  check(training.most >= training.least && training.most <= 65536, settings.full_name("most_items"),
        ": must be from least_items = ", training.least, " to 65536, got ", training.most);
  check_above_zero(settings.full_name("lr"), training.learning_rate);
  check_not_negative(settings.full_name("weight_decay"), training.weight_decay);
}

void read_map(Settings& settings, RetrievalSettings& read) {
  settings.read("attention", read.attention);
  settings.read("attention_temperature", read.temperature);
  check_temperature(settings.full_name("attention_temperature").c_str(), read.temperature);
  const auto& entry = simplex_maps().find(read.attention);
  SimplexMap map;
  settings.read_prefixed("attention_", [&](Settings& own) { map = entry.make(own); });
  read.map = [map, temperature = read.temperature](const torch::Tensor& scores) {
    return map(scores, temperature);
  };
}

}  // namespace

RetrievalSettings RetrievalSettings::from(const Config& config) {
  config.reject_unknown_sections({kRetrieval});
  RetrievalSettings read;
  auto settings = config.section(kRetrieval);
  settings.read("seed", read.seed);
  settings.read("width", read.shape.width);
  settings.read("classes", read.shape.classes);
  check(read.shape.width >= 1 && read.shape.width <= 4096, settings.full_name("width"),
        ": must be from 1 to 4096, got ", read.shape.width);
  check(read.shape.classes >= 2 && read.shape.classes <= 1000, settings.full_name("classes"),
        ": must be from 2 to 1000, got ", read.shape.classes);
  read_retrieval_training(settings, read.training);
  read.training.classes = read.shape.classes;
  read_map(settings, read);
  settings.reject_unknown_keys();
  for (const auto& [key, value] : settings.resolved()) {
    read.resolved.set(std::string(kRetrieval) + "." + key, value);
  }
  return read;
}

RetrievalNetwork RetrievalSettings::network() const {
  return {shape, derive_seed(static_cast<uint64_t>(seed), "init")};
}

uint64_t RetrievalSettings::sets_seed() const {
  return derive_seed(static_cast<uint64_t>(seed), "sets");
}

ScoreMap map_of_text(const std::string& text, const std::string& where) {
  auto parts = split(text, ':');
  const auto name = parts.front();
  parts.erase(parts.begin());
  Config config;
  for (const auto& assignment : parts) {
    check(assignment.find('=') != std::string::npos, where, ": must be NAME:KEY=VALUE, got '", text,
          "'");
    auto setting = name;
    setting += '.';
    setting += assignment;
    config.apply_override(setting);
  }
  const auto& entry = simplex_maps().find(name);
  auto settings = config.section(name);
  auto map = entry.make(settings);
  settings.reject_unknown_keys();
  return [map](const torch::Tensor& scores) { return map(scores, /*temperature=*/1); };
}

}  // namespace kelvin
