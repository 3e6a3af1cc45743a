#include "kelvin/formats/jpeg_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <vector>

// clang-format off: needs the standard headers above, and the second one the first
#include <jerror.h>
#include <jpeglib.h>
// clang-format on

#include "kelvin/core/check.h"
#include "kelvin/formats/picture_decoder.h"

namespace kelvin {
namespace {

constexpr int kEighths = 8;
constexpr int64_t kJpegChannels = 3;
// Each scan of a progressive file goes over all pixels; more than these would be an attack.
constexpr int kMostScans = 500;
// A block of 8x8 pixels takes at least one bit of Huffman code.
constexpr int64_t kMostPixelsPerByte = 512;

// Warnings after which the pixels are those of the file.
bool is_harmless(int code) {
  return code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR ||
         code == JWRN_NOT_SEQUENTIAL || code == JWRN_TOO_MUCH_DATA;
}

// `attempt` calls libjpeg, and only it, see ErrorJump.
class JpegDecoder {
 public:
  JpegDecoder(std::span<const uint8_t> bytes, const std::string& where)
      : bytes_(bytes), where_(where) {
    jpeg_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr jpeg) { of(jpeg).fail(); };
    errors_.emit_message = [](j_common_ptr jpeg, int level) {
      if (level < 0 && !is_harmless(jpeg->err->msg_code)) of(jpeg).fail();
    };
    errors_.output_message = [](j_common_ptr) {};
    progress_.progress_monitor = [](j_common_ptr jpeg) { of(jpeg).limit_scans(); };
    jpeg_.client_data = this;
    attempt([](JpegDecoder& self) { jpeg_create_decompress(&self.jpeg_); });
    jpeg_.progress = &progress_;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&jpeg_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  PictureSize read_header() {
    attempt([](JpegDecoder& self) {
      jpeg_mem_src(&self.jpeg_, self.bytes_.data(), self.bytes_.size());
      jpeg_read_header(&self.jpeg_, TRUE);
    });
    const PictureSize size{.width = jpeg_.image_width, .height = jpeg_.image_height};
    check(jpeg_.arith_code == FALSE, where_, ": a JPEG must have Huffman codes, has arithmetic");
    const auto colours = jpeg_.jpeg_color_space;
    check(colours != JCS_UNKNOWN, where_, ": a JPEG must be grey, YCbCr, RGB, CMYK or YCCK, has ",
          jpeg_.num_components, " colour channels of another kind");
    check_claimed_size(size, size.width * size.height / kMostPixelsPerByte, bytes_.size(), where_,
                       "JPEG");
    return size;
  }

  Picture decode(int eighths) {
    jpeg_.scale_num = static_cast<unsigned>(eighths);
    jpeg_.scale_denom = kEighths;
    const bool has_black = jpeg_.num_components == 4;
    jpeg_.out_color_space = has_black ? JCS_CMYK : JCS_RGB;
    attempt([](JpegDecoder& self) { jpeg_start_decompress(&self.jpeg_); });
    const int64_t width = jpeg_.output_width;
    const int64_t height = jpeg_.output_height;
    Picture picture{.width = width, .height = height, .rgb = {}};
    picture.rgb.resize(static_cast<size_t>(width * height * kJpegChannels));
    if (has_black) {
      read_cmyk(picture);
    } else {
      read_rgb(picture);
    }
    attempt([](JpegDecoder& self) { jpeg_finish_decompress(&self.jpeg_); });
    return picture;
  }

 private:
  static JpegDecoder& of(j_common_ptr jpeg) {
    return *static_cast<JpegDecoder*>(jpeg->client_data);
  }

  template <class Step>
  void attempt(Step step) {
    if (!jump_.completes([this, &step] { step(*this); })) throw_error();
  }

  [[noreturn]] void fail() { jump_.leave(); }

  void throw_error() {
    std::array<char, JMSG_LENGTH_MAX> text = {};
    errors_.format_message(reinterpret_cast<j_common_ptr>(&jpeg_), text.data());
    const auto left = jpeg_.src == nullptr ? 0 : jpeg_.src->bytes_in_buffer;
    check(!has_too_many_scans_, where_, ": a JPEG may have up to ", kMostScans, " scans, has more");
    check(false, where_, ": a JPEG that cannot be decoded: ", text.data(), ", after byte ",
          bytes_.size() - std::min(left, bytes_.size()), " of ", bytes_.size());
  }

  void limit_scans() {
    has_too_many_scans_ = jpeg_.input_scan_number > kMostScans;
    if (has_too_many_scans_) fail();
  }

  void read_rgb(Picture& picture) {
    const auto row_bytes = picture.width * kJpegChannels;
    attempt([&picture, row_bytes](JpegDecoder& self) {
      std::array<JSAMPROW, 16> rows = {};
      while (self.jpeg_.output_scanline < self.jpeg_.output_height) {
        const auto first = self.jpeg_.output_scanline;
        const auto count = std::min<JDIMENSION>(rows.size(), self.jpeg_.output_height - first);
        for (JDIMENSION row = 0; row < count; ++row) {
          rows[row] = picture.rgb.data() + (first + row) * row_bytes;
        }
        jpeg_read_scanlines(&self.jpeg_, rows.data(), count);
      }
    });
  }

  void read_cmyk(Picture& picture) {
    std::vector<uint8_t> cmyk(static_cast<size_t>(picture.width) * 4);
    uint8_t* row = cmyk.data();
    uint8_t* rgb = picture.rgb.data();
    while (jpeg_.output_scanline < jpeg_.output_height) {
      attempt([&row](JpegDecoder& self) { jpeg_read_scanlines(&self.jpeg_, &row, 1); });
      for (int64_t i = 0; i < picture.width; ++i) rgb = put_rgb(row + i * 4, rgb);
    }
  }

  // As Pillow does it; inverted CMYK has the light that each ink leaves.
  static uint8_t* put_rgb(const uint8_t* cmyk, uint8_t* rgb) {
    const int light = cmyk[3];
    for (int64_t channel = 0; channel < kJpegChannels; ++channel) {
      const int product = (255 - cmyk[channel]) * light + 128;
      const int taken = ((product >> 8) + product) >> 8;
      *rgb++ = static_cast<uint8_t>(std::max(light - taken, 0));
    }
    return rgb;
  }

  std::span<const uint8_t> bytes_;
  const std::string& where_;
  jpeg_decompress_struct jpeg_ = {};
  jpeg_error_mgr errors_ = {};
  jpeg_progress_mgr progress_ = {};
  ErrorJump jump_;
  bool has_too_many_scans_ = false;
};

}  // namespace

bool is_jpeg(std::span<const uint8_t> bytes) {
  return bytes.size() >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

PictureSize jpeg_size(std::span<const uint8_t> bytes, const std::string& where) {
  return JpegDecoder(bytes, where).read_header();
}

Picture decode_jpeg(std::span<const uint8_t> bytes, const std::string& where,
                    double largest_shrink) {
  check(largest_shrink >= 1, where, ": the largest shrink must be at least 1, got ",
        largest_shrink);
  JpegDecoder decoder(bytes, where);
  decoder.read_header();
  // Halves alone: libjpeg-turbo has no vector instructions for what lies between, so that 7/8 to
  // 5/8 take longer than all of the pixels.
  int eighths = kEighths;
  while (eighths > 1 && kEighths <= largest_shrink * eighths / 2) eighths /= 2;
  return decoder.decode(eighths);
}

}  // namespace kelvin
