#pragma once

namespace kelvin {

extern const char* const kVersion;
extern const char* const kCommit;  // "unknown" outside of a git checkout

}  // namespace kelvin
