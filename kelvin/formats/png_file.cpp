#include "kelvin/formats/png_file.h"

#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/formats/picture_decoder.h"

namespace kelvin {
namespace {

constexpr int64_t kPngChannels = 3;
// Deflate cannot shrink by more than about 1032 times.
constexpr int64_t kMostShrink = 1100;
// Of a side: each row costs a pointer, whatever its width.
constexpr int64_t kMostOnASide = int64_t{1} << 20;

// `attempt` calls libpng, and only it, see ErrorJump.
class PngDecoder {
 public:
  PngDecoder(std::span<const uint8_t> bytes, const std::string& where)
      : bytes_(bytes), where_(where) {
    png_ = png_create_read_struct(
        PNG_LIBPNG_VER_STRING, this,
        [](png_structp png, png_const_charp message) { of(png).fail(message); },
        [](png_structp png, png_const_charp message) { of(png).fail(message); });
    info_ = png_ == nullptr ? nullptr : png_create_info_struct(png_);
    if (info_ == nullptr) png_destroy_read_struct(&png_, &info_, nullptr);
    check(info_ != nullptr, where_, ": libpng does not start");
  }
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  PictureSize read_header() {
    attempt([](PngDecoder& self) {
      png_set_read_fn(self.png_, &self, [](png_structp png, png_bytep out, size_t length) {
        of(png).read(out, length);
      });
      // Texts, colour profiles and the like: their contents are of no use here and a way to attack.
      png_set_keep_unknown_chunks(self.png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
      png_set_user_limits(self.png_, kMostOnASide, kMostOnASide);
      png_read_info(self.png_, self.info_);
    });
    const PictureSize size{.width = png_get_image_width(png_, info_),
                           .height = png_get_image_height(png_, info_)};
    const auto raw = static_cast<int64_t>(png_get_rowbytes(png_, info_)) * size.height;
    check_claimed_size(size, raw / kMostShrink, bytes_.size(), where_, "PNG");
    return size;
  }

  Picture decode() {
    const auto size = read_header();
    Picture picture{.width = size.width, .height = size.height, .rgb = {}};
    picture.rgb.resize(static_cast<size_t>(size.width * size.height * kPngChannels));
    std::vector<png_bytep> rows;
    for (int64_t row = 0; row < size.height; ++row) {
      rows.push_back(picture.rgb.data() + row * size.width * kPngChannels);
    }
    attempt([&rows](PngDecoder& self) {
      self.ask_for_rgb();
      png_read_image(self.png_, rows.data());
      png_read_end(self.png_, nullptr);
    });
    return picture;
  }

 private:
  static PngDecoder& of(png_structp png) {
    return *static_cast<PngDecoder*>(png_get_error_ptr(png));
  }

  template <class Step>
  void attempt(Step step) {
    const bool is_done = jump_.completes([this, &step] { step(*this); });
    check(is_done, where_, ": a PNG that cannot be decoded: ", message_.data(), ", after byte ",
          read_, " of ", bytes_.size());
  }

  [[noreturn]] void fail(const char* message) {
    std::strncpy(message_.data(), message, message_.size() - 1);
    jump_.leave();
  }

  void read(png_bytep out, size_t length) {
    if (length > bytes_.size() - read_) fail("the data end too early");
    std::memcpy(out, bytes_.data() + read_, length);
    read_ += length;
  }

  void ask_for_rgb() {
    const auto kind = png_get_color_type(png_, info_);
    png_set_strip_16(png_);
    if (kind == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (kind == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png_);
    if ((kind & PNG_COLOR_MASK_COLOR) == 0) png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
  }

  std::span<const uint8_t> bytes_;
  const std::string& where_;
  size_t read_ = 0;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  ErrorJump jump_;
  std::array<char, 200> message_ = {};
};

// The chunk that says who wrote the file.
std::string writer_chunk() {
  const std::string content("tEXtSoftware\0kelvin", 19);
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
  const auto big_endian = [](uint64_t number) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) {
      bytes += static_cast<char>((number >> static_cast<unsigned>(shift)) & 0xff);
    }
    return bytes;
  };
  return big_endian(content.size() - 4) + content + big_endian(crc);
}

}  // namespace

bool is_png(std::span<const uint8_t> bytes) {
  constexpr std::array<uint8_t, 8> kMagic = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  return bytes.size() >= kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), bytes.begin());
}

PictureSize png_size(std::span<const uint8_t> bytes, const std::string& where) {
  return PngDecoder(bytes, where).read_header();
}

Picture decode_png(std::span<const uint8_t> bytes, const std::string& where) {
  return PngDecoder(bytes, where).decode();
}

void write_png(const std::filesystem::path& path, const Picture& picture) {
  const auto given = static_cast<int64_t>(picture.rgb.size());
  check(picture.width > 0 && picture.height > 0 && picture.width <= kMostPixels / picture.height &&
            picture.width * picture.height * kPngChannels == given,
        path.string(), ": a picture of ", picture.width, "x", picture.height,
        " must have 3 bytes per pixel and from one to ", kMostPixels, " pixels, got ", given,
        " bytes");
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.format = PNG_FORMAT_RGB;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  std::string file(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t length = file.size();
  const bool is_encoded = png_image_write_to_memory(&image, file.data(), &length, 0,
                                                    picture.rgb.data(), 0, nullptr) != 0;
  check(is_encoded, path.string(), ": cannot be made a PNG: ", image.message);
  file.resize(length);
  constexpr size_t kHead = 8 + 25;  // the signature and the chunk IHDR, which come first
  file.insert(kHead, writer_chunk());
  write_file_atomically(path, file);
}

}  // namespace kelvin
