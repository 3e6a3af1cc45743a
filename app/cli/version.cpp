#include "app/cli/version.h"

#include "kelvin_commit.h"  // made by the build

namespace kelvin {

const char* const kVersion = KELVIN_VERSION;  // set by the build
const char* const kLibraryFile = "libkelvin.so." KELVIN_INTERFACE;
const char* const kCommit = KELVIN_COMMIT;
const char* const kDate = KELVIN_DATE;

}  // namespace kelvin
