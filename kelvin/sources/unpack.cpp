#include "kelvin/sources/unpack.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/sources/partial_file.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPieceBytes = size_t{1} << 16;

struct FreeArchive {
  void operator()(archive* reader) const { archive_read_free(reader); }
};
using Reader = std::unique_ptr<archive, FreeArchive>;

struct Block {
  std::string_view bytes;
  int64_t offset = 0;
  bool is_last = false;  // no bytes then
};

// Only what is named here is understood; above all nothing that would start another program.
Reader new_reader() {
  Reader reader(archive_read_new());
  check(reader != nullptr, "libarchive does not start");
  for (const auto support : {archive_read_support_filter_gzip, archive_read_support_filter_xz,
                             archive_read_support_filter_zstd, archive_read_support_format_tar,
                             archive_read_support_format_zip, archive_read_support_format_ar}) {
    check(support(reader.get()) == ARCHIVE_OK,
          "libarchive lacks a format: ", archive_error_string(reader.get()));
  }
  return reader;
}

class Unpacker {
 public:
  Unpacker(const fs::path& path, const std::map<std::string, WantedMember>& wanted,
           int64_t most_bytes)
      : where_(path.string()), wanted_(wanted), most_bytes_(most_bytes) {}

  void unpack_file(const fs::path& path) {
    const auto reader = new_reader();
    require(reader.get(), archive_read_open_filename(reader.get(), path.c_str(), kPieceBytes));
    unpack(reader.get(), /*is_nested=*/false);
    reject_missing();
  }

 private:
  // Lets libarchive read an archive out of a member of another one.
  struct Nested {
    Unpacker* unpacker;
    archive* outer;
    std::string failure = {};  // exceptions must not pass through C
  };

  static la_ssize_t read_nested(archive* inner, void* context, const void** bytes) {
    auto& nested = *static_cast<Nested*>(context);
    try {
      Block block;
      do block = nested.unpacker->next_block(nested.outer);
      while (block.bytes.empty() && !block.is_last);
      *bytes = block.bytes.data();
      return static_cast<la_ssize_t>(block.bytes.size());
    } catch (const Error& error) {
      nested.failure = error.what();
      archive_set_error(inner, EIO, "%s", "its container is damaged");
      return ARCHIVE_FATAL;
    }
  }

  void require(archive* reader, int result) const {
    if (result >= ARCHIVE_WARN) return;  // success, the end, or a remark about attributes
    const char* reason = archive_error_string(reader);
    check(false, where_,
          ": cannot be unpacked: ", reason == nullptr ? "libarchive gives no reason" : reason);
  }

  void count(int64_t bytes) {
    check(bytes <= most_bytes_ - inflated_, where_, ": must inflate to at most ", most_bytes_,
          " bytes, more are there");
    inflated_ += bytes;
  }

  Block next_block(archive* reader) {
    const void* bytes = nullptr;
    size_t size = 0;
    Block block;
    const auto result = archive_read_data_block(reader, &bytes, &size, &block.offset);
    require(reader, result);
    block.is_last = result == ARCHIVE_EOF;
    if (!block.is_last) block.bytes = {static_cast<const char*>(bytes), size};
    count(static_cast<int64_t>(block.bytes.size()));
    return block;
  }

  // What the headers take counts too: a tar of endlessly many empty members is a bomb as well.
  void count_headers(archive* reader) const {
    check(archive_filter_bytes(reader, 0) <= most_bytes_, where_, ": must inflate to at most ",
          most_bytes_, " bytes, more are there");
  }

  void unpack(archive* reader, bool is_nested) {
    archive_entry* entry = nullptr;
    for (;;) {
      const auto result = archive_read_next_header(reader, &entry);
      require(reader, result);
      if (result == ARCHIVE_EOF) return;
      count_headers(reader);
      const char* path = archive_entry_pathname(entry);
      check(path != nullptr, where_, ": has a member whose name cannot be read");
      reject_escape(path);
      const bool is_package =
          (archive_format(reader) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_AR;
      if (is_package && !is_nested && std::string_view(path).starts_with("data.tar")) {
        unpack_nested(reader);
      } else {
        unpack_member(reader, entry, path);
      }
    }
  }

  void unpack_nested(archive* outer) {
    Nested nested{.unpacker = this, .outer = outer};
    const auto inner = new_reader();
    const auto opened = archive_read_open(inner.get(), &nested, nullptr, read_nested, nullptr);
    try {
      require(inner.get(), opened);
      unpack(inner.get(), /*is_nested=*/true);
    } catch (const DiskError&) {
      throw;
    } catch (const Error&) {
      check(nested.failure.empty(), nested.failure);
      throw;
    }
  }

  void reject_escape(const std::string& path) const {
    auto parts = path;
    std::replace(parts.begin(), parts.end(), '\\', '/');
    const auto names = split(parts, '/');
    const bool climbs = std::find(names.begin(), names.end(), "..") != names.end();
    check(!parts.starts_with('/') && !climbs, where_,
          ": members must stay inside of their folder, has '", path, "'");
  }

  void unpack_member(archive* reader, archive_entry* entry, const std::string& path) {
    const auto wanted = wanted_.find(fs::path(path).filename().string());
    if (wanted == wanted_.end()) {
      while (!next_block(reader).is_last) continue;
      return;
    }
    const auto& [name, member] = *wanted;
    const bool is_regular =
        archive_entry_filetype(entry) == AE_IFREG && archive_entry_hardlink(entry) == nullptr;
    check(is_regular, where_, ": '", path, "' must be a regular file, is a link, folder or device");
    check(written_.insert(name).second, where_, ": must hold '", name,
          "' once, holds it again as '", path, "'");
    NewFile file(member.target, member.most_bytes);
    for (auto block = next_block(reader); !block.is_last; block = next_block(reader)) {
      check(block.offset == file.bytes(), where_, ": '", path, "' has holes at ", file.bytes());
      file.write(block.bytes);
    }
    file.close();
  }

  void reject_missing() const {
    std::vector<std::string> missing;
    for (const auto& [name, member] : wanted_) {
      if (member.is_required && !written_.contains(name)) missing.push_back(name);
    }
    check(missing.empty(), where_, ": lacks ", join(missing, ", "));
  }

  std::string where_;
  const std::map<std::string, WantedMember>& wanted_;
  int64_t most_bytes_;
  int64_t inflated_ = 0;
  std::set<std::string> written_;
};

}  // namespace

void unpack_members(const fs::path& archive, const std::map<std::string, WantedMember>& wanted,
                    int64_t most_bytes) {
  Unpacker(archive, wanted, most_bytes).unpack_file(archive);
}

}  // namespace kelvin
