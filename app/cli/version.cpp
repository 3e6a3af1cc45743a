#include "app/cli/version.h"

#include "kelvin_commit.h"  // made by the build

namespace kelvin {

const char* const kVersion = KELVIN_VERSION;  // set by the build
const char* const kCommit = KELVIN_COMMIT;

}  // namespace kelvin
