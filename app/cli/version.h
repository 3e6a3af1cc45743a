#pragma once

namespace kelvin {

extern const char* const kVersion;
extern const char* const kLibraryFile;  // libkelvin.so with the version of its interface
extern const char* const kCommit;       // "unknown" outside of a git checkout
extern const char* const kDate;         // of the commit, such as 2026-01-31; else empty

}  // namespace kelvin
