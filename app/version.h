#pragma once

namespace kelvin {

constexpr auto kVersion = KELVIN_VERSION;  // both are set by the build
constexpr auto kCommit = KELVIN_COMMIT;

}  // namespace kelvin
