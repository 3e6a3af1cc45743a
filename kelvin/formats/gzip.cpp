#include "kelvin/formats/gzip.h"

#include <zlib.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"

namespace kelvin {
namespace {

constexpr int kGzipOnly = 16 + MAX_WBITS;
constexpr int kZlibOnly = MAX_WBITS;

// One stream out of `packed`, piece by piece, so that nothing is reserved on the word of a header.
class Inflater {
 public:
  Inflater(std::string_view packed, const std::string& where, int64_t most_bytes, int window)
      : packed_(packed), where_(where), most_(static_cast<size_t>(most_bytes)) {
    check(inflateInit2(&stream_, window) == Z_OK, where_, ": zlib does not start");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  bool has_more() const { return read_ < packed_.size(); }

  // To the end of the next stream.
  void append_to(std::string& content) {
    check(inflateReset(&stream_) == Z_OK, where_, ": zlib does not start");
    // A guess: images hardly shrink, and what is reserved but not used costs nothing.
    content.reserve(std::min(content.size() + 2 * (packed_.size() - read_), most_ + 1));
    int result = Z_OK;
    while (result != Z_STREAM_END) {
      const auto before = content.size();
      check(before <= most_, where_, ": must hold at most ", most_, " bytes, holds more");
      // One byte beyond the limit tells a stream that ends there from one that does not.
      content.resize(std::min(before + std::clamp(before, kLeastPiece, kMostPiece), most_ + 1));
      result = inflate_into(content, before);
    }
    check(content.size() <= most_, where_, ": must hold at most ", most_, " bytes, holds more");
  }

 private:
  static constexpr size_t kLeastPiece = size_t{1} << 12;
  static constexpr size_t kMostPiece = size_t{1} << 20;
  static constexpr size_t kMostAtOnce = size_t{1} << 30;  // zlib counts in 32 bits

  // Fills `content` from `written` on and cuts it to what there was.
  int inflate_into(std::string& content, size_t written) {
    int result = Z_OK;
    while (result == Z_OK && written < content.size()) {
      const auto in = std::min(packed_.size() - read_, kMostAtOnce);
      const auto out = std::min(content.size() - written, kMostAtOnce);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed_.data() + read_));
      stream_.avail_in = static_cast<uInt>(in);
      stream_.next_out = reinterpret_cast<Bytef*>(content.data() + written);
      stream_.avail_out = static_cast<uInt>(out);
      result = inflate(&stream_, Z_NO_FLUSH);
      read_ += in - stream_.avail_in;
      written += out - stream_.avail_out;
      check(result == Z_OK || result == Z_STREAM_END, where_, ": byte ", read_,
            ": its compressed data is damaged or cut off");
    }
    content.resize(written);
    return result;
  }

  z_stream stream_ = {};
  std::string_view packed_;
  const std::string& where_;
  size_t most_ = 0;
  size_t read_ = 0;
};

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::string gunzipped(std::string_view packed, const std::string& where, int64_t most_bytes) {
  check(is_gzip(packed), where, ": is not a gzip file");
  std::string content;
  Inflater inflater(packed, where, most_bytes, kGzipOnly);
  while (inflater.has_more()) inflater.append_to(content);
  return content;
}

std::string inflated(std::string_view packed, const std::string& where, int64_t most_bytes) {
  std::string content;
  Inflater inflater(packed, where, most_bytes, kZlibOnly);
  inflater.append_to(content);
  check(!inflater.has_more(), where, ": bytes follow the end of its compressed data");
  return content;
}

std::string read_file_or_gzip(const std::filesystem::path& path, int64_t most_bytes) {
  std::error_code failure;
  const auto size = std::filesystem::file_size(path, failure);
  // What has no size (not there, a folder, a device) is told by the attempt to read it.
  if (failure && std::filesystem::is_other(path)) {
    check(false, path.string(), ": must be a file");
  }
  // Data that do not shrink grow a little in a gzip.
  const auto most_packed =
      static_cast<uint64_t>(most_bytes) + static_cast<uint64_t>(most_bytes) / 64 + 4096;
  check(failure || size <= most_packed, path.string(), ": must hold at most ", most_bytes,
        " bytes, has ", size);
  auto content = read_file(path);
  if (is_gzip(content)) return gunzipped(content, path.string(), most_bytes);
  check(content.size() <= static_cast<uint64_t>(most_bytes), path.string(), ": must hold at most ",
        most_bytes, " bytes, has ", content.size());
  return content;
}

}  // namespace kelvin
