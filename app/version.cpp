#include "app/version.h"

namespace kelvin {

const char* const kVersion = KELVIN_VERSION;  // both are set by the build
const char* const kCommit = KELVIN_COMMIT;

}  // namespace kelvin
