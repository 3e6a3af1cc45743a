#include "kelvin/train/loss.h"

#include "kelvin/core/check.h"

namespace kelvin {

torch::Tensor Loss::targets(const torch::Tensor& labels) const {
  if (classifies()) return labels;
  check(labels.size(0) % views == 0, "loss: a batch must have ", views, " rows of each image, has ",
        labels.size(0), " rows");
  return torch::arange(labels.size(0) / views, labels.options()).repeat({views});
}

Registry<LossEntry>& losses() {
  static Registry<LossEntry> registry("loss");
  return registry;
}

}  // namespace kelvin
