#pragma once

#include <filesystem>

namespace kelvin {

// Moves the folder `fresh` to `target`.  A folder that is there already ends up at `old`, for the
// caller to delete.  All three lie in one file system; `old` must not exist.  At every moment the
// target is the old folder or the fresh one; only where the file system cannot exchange two names
// there is a moment without either.  A failure is a DiskError and leaves the target as it was.
void replace_folder(const std::filesystem::path& fresh, const std::filesystem::path& target,
                    const std::filesystem::path& old);

// The same for any file system: two renames, the first of which is undone if the second fails.
void replace_folder_in_two_steps(const std::filesystem::path& fresh,
                                 const std::filesystem::path& target,
                                 const std::filesystem::path& old);

}  // namespace kelvin
