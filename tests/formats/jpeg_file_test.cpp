#include "kelvin/formats/jpeg_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "kelvin/formats/resize.h"
#include "tests/support/errors.h"
#include "tests/support/mutations.h"
#include "tests/support/pictures.h"

namespace kelvin::jpeg_file_test {

constexpr auto kScript = R"(
for width, height in [(64, 48), (61, 45), (1, 1), (17, 1), (1, 33), (8, 8)]:
    for subsampling in (0, 1, 2):
        for quality in (10, 75, 95):
            for progressive in (False, True):
                name = f'{width}x{height}_{subsampling}_{quality}_{progressive}.jpg'
                keep_with_pixels(name, saved(picture(width, height), 'JPEG', quality=quality,
                                             subsampling=subsampling, progressive=progressive))
keep_with_pixels('large.jpg', saved(picture(500, 375), 'JPEG', quality=90, subsampling=2))
keep_with_pixels('optimised.jpg', saved(picture(50, 40), 'JPEG', optimize=True))
keep_with_pixels('grey.jpg', saved(picture(50, 41).convert('L'), 'JPEG'))
keep_with_pixels('grey_progressive.jpg',
                 saved(picture(50, 41).convert('L'), 'JPEG', progressive=True))
noise = np.random.RandomState(3).randint(0, 256, (41, 50, 4), dtype='uint8')
cmyk = saved(Image.fromarray(noise, 'CMYK'), 'JPEG', quality=90)
keep_with_pixels('cmyk.jpg', cmyk)
adobe = cmyk.index(b'Adobe')
ycck = bytearray(cmyk)
ycck[adobe + 11] = 2
keep_with_pixels('ycck.jpg', bytes(ycck))
plain = saved(picture(50, 41), 'JPEG', quality=90, subsampling=0)
marker = b'\xff\xee\x00\x0eAdobe' + struct.pack('>HHHB', 100, 0, 0, 0)
keep_with_pixels('rgb.jpg', plain[:2] + marker + plain[20:])
keep_with_pixels('comment.jpg', plain[:2] + b'\xff\xfe\x00\x06text' + plain[2:])
keep_with_pixels('more_behind.jpg', plain + b'anything' * 20)
end = plain.rindex(b'\xff\xd9')
keep_with_pixels('extraneous.jpg', plain[:end] + b'\x00\x01\x02' + plain[end:])

# One grey block whose coefficients are sent one by one and bit by bit, all of them zero.
def segment(code, content): return bytes([255, code]) + struct.pack('>H', len(content) + 2) + content
def with_scans(count):
    table = bytes([1] + [0] * 15 + [0])
    file = b'\xff\xd8' + segment(0xdb, b'\0' + bytes([1] * 64))
    file += segment(0xc2, bytes([8, 0, 8, 0, 8, 1, 1, 0x11, 0]))
    file += segment(0xc4, b'\0' + table + b'\x10' + table)
    scans = [(0, 0)] + [(k, (0 if bit == 13 else bit + 1) << 4 | bit)
                        for k in range(1, 64) for bit in range(13, -1, -1)]
    for k, bits in scans[:count]: file += segment(0xda, bytes([1, 1, 0, k, k, bits])) + b'\x7f'
    return file + b'\xff\xd9'
keep_with_pixels('500_scans.jpg', with_scans(500))
keep_with_pixels('501_scans.jpg', with_scans(501))
)";

const PillowSamples& samples() {
  static const PillowSamples made = pillow_samples(kScript);
  return made;
}

const std::vector<uint8_t>& file_of(const char* name) { return samples().at(name).file; }

// Where the marker 0xff `code` stands for the first time.
size_t position_of(const std::vector<uint8_t>& bytes, uint8_t code) {
  for (size_t i = 0; i + 1 < bytes.size(); ++i) {
    if (bytes[i] == 0xff && bytes[i + 1] == code) return i;
  }
  ADD_FAILURE() << "no marker " << int{code};
  return 0;
}

constexpr uint8_t kBaseline = 0xc0;
constexpr uint8_t kScan = 0xda;

std::vector<uint8_t> with_size(std::vector<uint8_t> bytes, int width, int height) {
  const auto frame = position_of(bytes, kBaseline);
  bytes[frame + 5] = static_cast<uint8_t>(height >> 8);
  bytes[frame + 6] = static_cast<uint8_t>(height);
  bytes[frame + 7] = static_cast<uint8_t>(width >> 8);
  bytes[frame + 8] = static_cast<uint8_t>(width);
  return bytes;
}

std::string refusal_of(const std::vector<uint8_t>& bytes) {
  return error_of([&] { decode_jpeg(bytes, "a.jpg"); });
}

TEST(DecodeJpeg, GivesThePixelsOfPillow) {
  EXPECT_EQ(samples().size(), 6U * 3 * 3 * 2 + 12);
  for (const auto& [name, sample] : samples()) {
    if (name == "501_scans.jpg") continue;
    expect_same_picture(decode_jpeg(sample.file, name), sample.decoded, name);
  }
}

TEST(JpegSize, IsThatOfThePicture) {
  for (const auto& [name, sample] : samples()) {
    const auto size = jpeg_size(sample.file, name);
    EXPECT_EQ(size.width, sample.decoded.width) << name;
    EXPECT_EQ(size.height, sample.decoded.height) << name;
  }
}

TEST(JpegSize, NeedsTheHeaderAlone) {
  const auto& bytes = file_of("large.jpg");
  const auto scan = position_of(bytes, kScan);
  const auto size = jpeg_size(front(bytes, scan + 400), "a.jpg");
  EXPECT_EQ(size.width, 500);
  EXPECT_EQ(size.height, 375);
}

TEST(DecodeJpeg, ShrinksByNoMoreThanItMay) {
  for (const double shrink : {1.0, 1.1, 1.3, 1.5, 2.0, 2.5, 3.9, 4.0, 7.9, 8.0, 50.0}) {
    const auto picture = decode_jpeg(file_of("large.jpg"), "a.jpg", shrink);
    EXPECT_LE(500 / shrink, picture.width) << shrink;
    EXPECT_LE(375 / shrink, picture.height) << shrink;
    EXPECT_EQ(picture.rgb.size(), static_cast<size_t>(picture.width * picture.height * 3));
  }
}

TEST(DecodeJpeg, ShrinksByHalves) {
  const auto width = [](double shrink) {
    return decode_jpeg(file_of("large.jpg"), "a.jpg", shrink).width;
  };
  EXPECT_EQ(width(1.99), 500);
  EXPECT_EQ(width(2), 250);
  EXPECT_EQ(width(3.99), 250);
  EXPECT_EQ(width(4), 125);
  EXPECT_EQ(width(8), 63);
  EXPECT_EQ(width(100), 63);
}

// The mean difference of all bytes after both were brought to one size.
double difference_after_shrinking(const PillowSample& sample, double shrink) {
  const auto small = decode_jpeg(sample.file, "a.jpg", shrink);
  constexpr int64_t kWidth = 60;
  constexpr int64_t kHeight = 45;
  std::vector<uint8_t> from_small(kWidth * kHeight * 3);
  std::vector<uint8_t> from_full(kWidth * kHeight * 3);
  const auto whole = [](const Picture& picture) {
    return Box{.width = static_cast<double>(picture.width),
               .height = static_cast<double>(picture.height)};
  };
  resize(small, whole(small), kWidth, kHeight, from_small);
  resize(sample.decoded, whole(sample.decoded), kWidth, kHeight, from_full);
  double sum = 0;
  for (size_t i = 0; i < from_small.size(); ++i) sum += std::abs(from_small[i] - from_full[i]);
  return sum / static_cast<double>(from_small.size());
}

TEST(DecodeJpeg, LooksTheSameWhenItShrinks) {
  EXPECT_EQ(difference_after_shrinking(samples().at("large.jpg"), 1), 0);
  for (const double shrink : {2.0, 4.0}) {
    EXPECT_LT(difference_after_shrinking(samples().at("large.jpg"), shrink), 3.5) << shrink;
  }
}

TEST(DecodeJpeg, RefusesAShrinkBelowOne) {
  EXPECT_EQ(error_of([] { decode_jpeg(file_of("rgb.jpg"), "a.jpg", 0.5); }),
            "a.jpg: the largest shrink must be at least 1, got 0.5");
  EXPECT_NE(error_of([] { decode_jpeg(file_of("rgb.jpg"), "a.jpg", NAN); }), "");
}

TEST(DecodeJpeg, RefusesAFileCutOffAtAnyByte) {
  for (const char* name : {"17x1_2_75_False.jpg", "17x1_2_75_True.jpg", "grey.jpg"}) {
    const auto& bytes = file_of(name);
    for (size_t length = 0; length < bytes.size(); length += length < 700 ? 1 : 7) {
      EXPECT_THROW(decode_jpeg(front(bytes, length), name), Error) << name << " at " << length;
    }
    EXPECT_THROW(decode_jpeg(front(bytes, bytes.size() - 1), name), Error) << name;
    EXPECT_THROW(decode_jpeg(front(bytes, bytes.size() - 2), name), Error) << name;
  }
  for (const char* name : {"64x48_2_75_True.jpg", "cmyk.jpg", "large.jpg"}) {
    const auto& bytes = file_of(name);
    for (size_t length = 1; length < bytes.size(); length += 1 + bytes.size() / 40) {
      EXPECT_THROW(decode_jpeg(front(bytes, length), name), Error) << name << " at " << length;
    }
  }
}

TEST(DecodeJpeg, SaysWhereTheDataEnd) {
  const auto message = refusal_of(front(file_of("large.jpg"), 5000));
  const std::string before =
      "a.jpg: a JPEG that cannot be decoded: Premature end of JPEG file, after byte ";
  ASSERT_EQ(message.find(before), 0U) << message;
  EXPECT_EQ(message.substr(message.find(" of 5000")), " of 5000");
  const auto place = std::stoi(message.substr(before.size()));
  EXPECT_GT(place, 4800);
  EXPECT_LE(place, 5000);
}

TEST(DecodeJpeg, RefusesAScanThatEndsTooEarly) {
  const auto& bytes = file_of("large.jpg");
  auto short_scan = front(bytes, bytes.size() / 2);
  short_scan.insert(short_scan.end(), {0xff, 0xd9});
  const auto message = refusal_of(short_scan);
  EXPECT_EQ(
      message.find("a.jpg: a JPEG that cannot be decoded: Corrupt JPEG data: premature end of "
                   "data segment, after byte "),
      0U)
      << message;
}

TEST(DecodeJpeg, RefusesMarkersThatAreCut) {
  const auto& bytes = file_of("comment.jpg");
  EXPECT_NE(refusal_of(front(bytes, 5)), "");
  auto long_comment = bytes;  // claims to reach beyond the end of the file
  long_comment[4] = 0xff;
  long_comment[5] = 0xff;
  EXPECT_NE(refusal_of(long_comment), "");
  auto short_frame = bytes;
  short_frame[position_of(bytes, kBaseline) + 3] = 9;
  EXPECT_EQ(
      refusal_of(short_frame).find("a.jpg: a JPEG that cannot be decoded: Bogus marker length"),
      0U);
}

TEST(DecodeJpeg, RefusesKindsItDoesNotKnow) {
  const auto& bytes = file_of("rgb.jpg");
  const auto frame = position_of(bytes, kBaseline);
  auto twelve_bits = bytes;
  twelve_bits[frame + 4] = 12;
  EXPECT_NE(refusal_of(twelve_bits).find("Unsupported JPEG data precision 12"), std::string::npos);
  auto lossless = bytes;
  lossless[frame + 1] = 0xc3;
  // libjpeg-turbo 3 knows lossless files, but not one with the scan of another kind.
  const auto refusal = refusal_of(lossless);
  EXPECT_TRUE(refusal.find("Unsupported JPEG process: SOF type 0xc3") != std::string::npos ||
              refusal.find("Invalid progressive/lossless parameters") != std::string::npos)
      << refusal;
  auto arithmetic = bytes;
  arithmetic[frame + 1] = 0xc9;
  EXPECT_EQ(refusal_of(arithmetic), "a.jpg: a JPEG must have Huffman codes, has arithmetic");
}

TEST(DecodeJpeg, RefusesTwoColourChannels) {
  const std::vector<uint8_t> two = {0xff, 0xd8, 0xff, 0xc0, 0, 14, 8, 0, 8, 0, 8, 2, 1,  0x11, 0, 2,
                                    0x11, 0,    0xff, 0xda, 0, 10, 2, 1, 0, 2, 0, 0, 63, 0};
  EXPECT_EQ(refusal_of(two),
            "a.jpg: a JPEG must be grey, YCbCr, RGB, CMYK or YCCK, has 2 colour channels of "
            "another kind");
}

TEST(DecodeJpeg, RefusesAbsurdSizesBeforeItReservesThem) {
  const auto& bytes = file_of("rgb.jpg");
  EXPECT_EQ(refusal_of(with_size(bytes, 65000, 65000)),
            "a.jpg: a JPEG may have up to 134217728 pixels, has 65000x65000");
  EXPECT_EQ(refusal_of(with_size(bytes, 10000, 10000)),
            "a.jpg: is cut off or damaged: claims 10000x10000 pixels in " +
                std::to_string(bytes.size()) + " bytes");
  EXPECT_NE(refusal_of(with_size(bytes, 65535, 65535)).find("Maximum supported image dimension"),
            std::string::npos);
  EXPECT_NE(refusal_of(with_size(bytes, 0, 10)).find("Empty JPEG image"), std::string::npos);
  EXPECT_NE(refusal_of(with_size(bytes, 10, 0)), "");
}

TEST(DecodeJpeg, RefusesScansWithoutEnd) {
  EXPECT_EQ(refusal_of(file_of("501_scans.jpg")),
            "a.jpg: a JPEG may have up to 500 scans, has more");
}

TEST(DecodeJpeg, SurvivesAnyDamage) {
  uint32_t seed = 0;
  for (const char* name : {"17x1_2_75_False.jpg", "61x45_2_75_True.jpg", "61x45_1_75_False.jpg",
                           "cmyk.jpg", "ycck.jpg", "grey_progressive.jpg", "500_scans.jpg"}) {
    const auto& file = file_of(name);
    expect_values_or_errors({file.begin(), file.end()}, 250, ++seed, [](const std::string& bytes) {
      const auto picture = decode_jpeg(as_bytes(bytes), "a.jpg", bytes.size() % 3 == 0 ? 1 : 2.5);
      EXPECT_EQ(picture.rgb.size(), static_cast<size_t>(picture.width * picture.height * 3));
    });
  }
}

TEST(DecodeJpeg, SurvivesNoise) {
  std::mt19937 random(5);
  for (int round = 0; round < fuzz_rounds(300); ++round) {
    std::vector<uint8_t> noise(random() % 300);
    for (auto& byte : noise) byte = static_cast<uint8_t>(random());
    EXPECT_THROW(decode_jpeg(noise, "a.jpg"), Error);
    const auto scan = position_of(file_of("rgb.jpg"), kScan) + 14;
    auto behind_header = front(file_of("rgb.jpg"), scan);
    behind_header.insert(behind_header.end(), noise.begin(), noise.end());
    EXPECT_THROW(decode_jpeg(behind_header, "a.jpg"), Error);
  }
}

TEST(IsJpeg, GoesByTheFirstBytes) {
  EXPECT_TRUE(is_jpeg(file_of("rgb.jpg")));
  EXPECT_FALSE(is_jpeg(as_bytes("")));
  EXPECT_FALSE(is_jpeg(as_bytes("\xff\xd8")));
  EXPECT_FALSE(is_jpeg(as_bytes("GIF89a")));
}

}  // namespace kelvin::jpeg_file_test
