#include "kelvin/measures/measure.h"

namespace kelvin {

Registry<MeasureEntry>& measures() {
  static Registry<MeasureEntry> registry("measure");
  return registry;
}

}  // namespace kelvin
