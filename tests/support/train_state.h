#pragma once

#include <torch/torch.h>

#include <memory>

#include "kelvin/experiment/run/run_log.h"
#include "kelvin/runs/run_folder.h"
#include "kelvin/train/train.h"
#include "tests/support/command.h"

namespace kelvin {

// For observers: a run folder with its log, and states of a training that did not happen.
class ObservedTraining {
 public:
  ObservedTraining() {
    Settings settings("model", {{"depth", 1}});
    model = models().find("mlp").build({.channels = 1, .height = 1, .width = 2, .classes = 10},
                                       settings);
    context.warn = [this](const std::string& text) { warnings.push_back(text); };
  }

  TrainState at(int64_t step) {
    return {.model = *model,
            .options = options,
            .epoch = step / 10,
            .step = step,
            .total_steps = 200,
            .steps_per_epoch = 10,
            .learning_rate = 0.1,
            .temperature = options.temperature.first,
            .snapshot = [step] {
              return TrainSnapshot{.step = step, .weights = {{"step", torch::tensor(step)}}};
            }};
  }

  TemporaryFolder folder;
  RunFolder run = RunFolder::create(folder / "run", {}, nlohmann::ordered_json::object());
  RunContext context;
  std::vector<std::string> warnings;
  RunLog log{run, context, 0};
  TrainOptions options;
  std::shared_ptr<Model> model;
};

}  // namespace kelvin
