#include "kelvin/measures/detectors/detector.h"

namespace kelvin {

Registry<DetectorEntry>& detectors() {
  static Registry<DetectorEntry> registry("detector");
  return registry;
}

}  // namespace kelvin
