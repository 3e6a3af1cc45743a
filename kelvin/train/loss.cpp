#include "kelvin/train/loss.h"

namespace kelvin {

Registry<LossEntry>& losses() {
  static Registry<LossEntry> registry("loss");
  return registry;
}

}  // namespace kelvin
