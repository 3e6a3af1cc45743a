#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace kelvin {

struct WantedMember {
  std::filesystem::path target;  // must not exist; its folder must
  int64_t most_bytes = 0;
  bool is_required = true;  // otherwise it may be missing
};

// Writes the members of an archive that have these names, whatever folder inside of the archive
// they are in: a tar (plain, gzip, xz, zstd), a zip, or a Debian package, whose data.tar is meant.
//
// Archives are strangers' files.  A path that is absolute or has `..` in it is an Error wherever it
// occurs; a wanted member must be a regular file, must not be there twice and keep its limit;
// the archive may not inflate to more than `most_bytes`.  After an Error some targets may
// have been written: they belong into a folder that is thrown away.
void unpack_members(const std::filesystem::path& archive,
                    const std::map<std::string, WantedMember>& wanted, int64_t most_bytes);

}  // namespace kelvin
