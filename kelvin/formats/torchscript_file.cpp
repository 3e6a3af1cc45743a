#include "kelvin/formats/torchscript_file.h"

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/formats/byte_reader.h"
#include "kelvin/formats/zip_file.h"

namespace kelvin {

bool is_torchscript_file(const std::filesystem::path& path) {
  constexpr uint64_t kShortestZip = 22;
  if (!std::filesystem::is_regular_file(path)) return false;
  try {
    const ByteReader file(path);
    if (file.size() < kShortestZip || file.number<uint32_t>(0) != kZipLocalHeader) return false;
    const auto members = zip_members(file, "a file of torch.jit.save");
    return std::any_of(members.begin(), members.end(), [](const ZipMember& member) {
      return member.name.ends_with("/constants.pkl");
    });
  } catch (const Error&) {
    return false;
  }
}

}  // namespace kelvin
