#include "kelvin/experiment/prepared_model.h"

#include <torch/torch.h>

#include "kelvin/experiment/initial_logits.h"
#include "kelvin/model/weights.h"

namespace kelvin {

std::shared_ptr<Model> prepared_model(const RunSettings& settings, const Dataset& dataset,
                                      const RunContext& context) {
  auto model = settings.build_model(shape_for(dataset));
  const auto& init = settings.init;
  if (!init.pretrained.empty()) {
    const auto choice = load_weights(init.pretrained, *model,
                                     {.reset_head = init.reset_head, .part = init.pretrained_part});
    if (!choice.empty()) context.inform(choice);
  }
  if (init.target_logits_norm > 0) {
    scale_to_norm(*model, dataset, init.target_logits_norm, !init.pretrained.empty());
  }
  return model;
}

}  // namespace kelvin
