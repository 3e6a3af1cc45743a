#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kelvin/runs/config.h"

namespace kelvin {

inline const auto kNoMetadata = nlohmann::ordered_json::object();

inline constexpr auto kMeasures =
    R"(measure.names=["accuracy", "logits_norm", "solution_rank", "post_softmax_rank", "linear_probe"])";

// A second of training on drawn glyphs, with OOD data and probes.
inline Config tiny_config(const std::vector<std::string>& overrides = {}) {
  Config config;
  for (const char* each :
       {"seed=1", "data.name=glyphs10", "data.ood=[\"textures10\"]", "data.train_samples=256",
        "data.test_samples=128", "model.name=mlp", "model.width=16", "model.depth=3",
        "train.epochs=2", "train.batch_size=64", "train.temperature=2", kMeasures,
        "measure.detectors=[\"neco\", \"msp\"]", "measure.linear_probe.max_iterations=10"}) {
    config.apply_override(each);
  }
  for (const auto& each : overrides) config.apply_override(each);
  return config;
}

}  // namespace kelvin
