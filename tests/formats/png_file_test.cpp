#include "kelvin/formats/png_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "kelvin/core/files.h"
#include "tests/support/errors.h"
#include "tests/support/mutations.h"
#include "tests/support/pictures.h"

namespace kelvin::png_file_test {

// Chunks by hand where Pillow does not write the kind: interlaced, 16 bits, and lies.
constexpr auto kScript = R"(
def chunk(kind, content):
    return struct.pack('>I', len(content)) + kind + content + struct.pack('>I', zlib.crc32(kind + content))
def png(width, height, bits, colour, rows, between=b'', interlaced=0):
    head = struct.pack('>IIBBBBB', width, height, bits, colour, 0, 0, interlaced)
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', head) + between + chunk(b'IDAT', zlib.compress(rows))
            + chunk(b'IEND', b''))
def filtered(rows): return b''.join(b'\0' + row for row in rows)
random = np.random.RandomState(1)
palette = chunk(b'PLTE', bytes(random.randint(0, 256, 48, dtype='uint8')))

for width, height in [(50, 41), (1, 1), (3, 70), (9, 2)]:
    image = picture(width, height)
    grey = random.randint(0, 256, (height, width, 2), dtype='uint8')
    rgba = np.dstack([np.array(image), grey[..., 0]])
    size = f'{width}x{height}_'
    for name, kind in [('rgb', image), ('rgba', Image.fromarray(rgba, 'RGBA')),
                       ('grey', image.convert('L')), ('grey_alpha', Image.fromarray(grey, 'LA')),
                       ('bits', image.convert('1')),
                       ('palette', image.convert('P', palette=Image.ADAPTIVE))]:
        keep_with_pixels(size + name + '.png', saved(kind, 'PNG'))
    for colours in (2, 4, 16):
        keep_with_pixels(size + f'palette{colours}.png',
                         saved(image.convert('P', palette=Image.ADAPTIVE, colors=colours), 'PNG'))
    for bits, colour in [(1, 0), (2, 0), (4, 0), (1, 3), (2, 3), (4, 3), (16, 2), (16, 6), (16, 4)]:
        channels = {0: 1, 3: 1, 2: 3, 6: 4, 4: 2}[colour]
        row = (width * channels * bits + 7) // 8
        rows = [random.bytes(row) for _ in range(height)]
        keep_with_pixels(size + f'depth{bits}_kind{colour}.png',
                         png(width, height, bits, colour, filtered(rows), palette if colour == 3 else b''))
    # Interlaced, for every depth in which a pixel is whole bytes.
    pixels = np.array(image)
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    parts = [pixels[top::down, left::across] for left, top, across, down in passes]
    rows = b''.join(filtered([row.tobytes() for row in part]) for part in parts if part.size)
    keep_with_pixels(size + 'interlaced.png', png(width, height, 8, 2, rows, interlaced=1))

plain = saved(picture(50, 41), 'PNG')
head = plain[:33]
keep_with_pixels('text.png', head + chunk(b'tEXt', b'Comment\0' + b'x' * 100000) + plain[33:])
keep_with_pixels('bomb_in_text.png',
                 head + chunk(b'zTXt', b'a\0\0' + zlib.compress(b'x' * 50000000)) + plain[33:], plain)
keep_with_pixels('odd_profile.png', head + chunk(b'gAMA', b'\0\0\0\1') + chunk(b'iCCP', b'no\0\0no')
                 + plain[33:], plain)
keep_with_pixels('transparent.png', head + chunk(b'tRNS', b'\0\1\0\2\0\3') + plain[33:])
keep_with_pixels('grey16.png', png(3, 1, 16, 0, b'\0' + struct.pack('>HHH', 0, 0x1234, 0xffff)))
)";

const PillowSamples& samples() {
  static const PillowSamples made = pillow_samples(kScript);
  return made;
}

const std::vector<uint8_t>& file_of(const char* name) { return samples().at(name).file; }

std::string refusal_of(const std::vector<uint8_t>& bytes) {
  return error_of([&] { decode_png(bytes, "a.png"); });
}

void put_big_endian(std::vector<uint8_t>& bytes, uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes.push_back(static_cast<uint8_t>(number >> shift));
}

uint32_t crc_of(const std::vector<uint8_t>& bytes) {
  uint32_t crc = 0xffffffff;
  for (const auto byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
  }
  return ~crc;
}

// A chunk with a true checksum.
std::vector<uint8_t> chunk(const std::string& kind, const std::vector<uint8_t>& content) {
  auto checked = as_bytes(kind);
  checked.insert(checked.end(), content.begin(), content.end());
  std::vector<uint8_t> bytes;
  put_big_endian(bytes, static_cast<uint32_t>(content.size()));
  bytes.insert(bytes.end(), checked.begin(), checked.end());
  put_big_endian(bytes, crc_of(checked));
  return bytes;
}

constexpr size_t kHeaderEnd = 33;  // of magic and IHDR

// The file with another header.
std::vector<uint8_t> with_header(const std::vector<uint8_t>& file, uint32_t width, uint32_t height,
                                 uint8_t bits, uint8_t colour) {
  std::vector<uint8_t> content;
  put_big_endian(content, width);
  put_big_endian(content, height);
  content.insert(content.end(), {bits, colour, 0, 0, 0});
  auto bytes = front(file, 8);
  const auto header = chunk("IHDR", content);
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), file.begin() + kHeaderEnd, file.end());
  return bytes;
}

std::vector<uint8_t> with_chunk(const std::vector<uint8_t>& file,
                                const std::vector<uint8_t>& inserted) {
  auto bytes = file;
  bytes.insert(bytes.begin() + kHeaderEnd, inserted.begin(), inserted.end());
  return bytes;
}

TEST(DecodePng, GivesThePixelsOfPillow) {
  EXPECT_EQ(samples().size(), 4U * (6 + 3 + 9 + 1) + 5);
  for (const auto& [name, sample] : samples()) {
    if (name == "grey16.png") continue;
    expect_same_picture(decode_png(sample.file, name), sample.decoded, name);
  }
}

// Where Pillow clips instead.
TEST(DecodePng, KeepsTheUpperHalfOf16BitsOfGrey) {
  EXPECT_EQ(decode_png(file_of("grey16.png"), "a.png").rgb,
            (std::vector<uint8_t>{0, 0, 0, 0x12, 0x12, 0x12, 255, 255, 255}));
}

TEST(PngSize, IsThatOfThePicture) {
  for (const auto& [name, sample] : samples()) {
    const auto size = png_size(sample.file, name);
    EXPECT_EQ(size.width, sample.decoded.width) << name;
    EXPECT_EQ(size.height, sample.decoded.height) << name;
  }
}

TEST(DecodePng, RefusesAFileCutOffAtAnyByte) {
  for (const char* name : {"9x2_rgb.png", "9x2_palette16.png", "3x70_interlaced.png"}) {
    const auto& bytes = file_of(name);
    for (size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_THROW(decode_png(front(bytes, length), name), Error) << name << " at " << length;
    }
  }
  EXPECT_EQ(refusal_of(front(file_of("9x2_rgb.png"), 50)),
            "a.png: a PNG that cannot be decoded: the data end too early, after byte 41 of 50");
}

TEST(DecodePng, RefusesAnyFlippedBit) {
  const auto& bytes = file_of("9x2_rgb.png");
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto damaged = bytes;
    damaged[bit / 8] = static_cast<uint8_t>(damaged[bit / 8] ^ (1U << bit % 8));
    EXPECT_THROW(decode_png(damaged, "a.png"), Error) << "bit " << bit;
  }
}

TEST(DecodePng, RefusesAWrongChecksumWhereverItIs) {
  auto pixels = file_of("9x2_rgb.png");
  pixels[pixels.size() - 14] ^= 1;
  EXPECT_NE(refusal_of(pixels).find("CRC error"), std::string::npos);
  auto text = file_of("text.png");
  text[100] ^= 1;
  EXPECT_NE(refusal_of(text).find("CRC error"), std::string::npos);
}

TEST(DecodePng, RefusesAbsurdSizesBeforeItReservesThem) {
  const auto& file = file_of("50x41_rgb.png");
  const auto length = std::to_string(file.size());
  EXPECT_EQ(refusal_of(with_header(file, 1000000, 1000000, 8, 2)),
            "a.png: a PNG may have up to 134217728 pixels, has 1000000x1000000");
  EXPECT_EQ(refusal_of(with_header(file, 10000, 10000, 8, 2)),
            "a.png: is cut off or damaged: claims 10000x10000 pixels in " + length + " bytes");
  EXPECT_EQ(refusal_of(with_header(file, 10000, 10000, 1, 0)),
            "a.png: is cut off or damaged: claims 10000x10000 pixels in " + length + " bytes");
  for (const auto& [width, height] : std::vector<std::pair<uint32_t, uint32_t>>{
           {0, 1}, {1, 0}, {0x7fffffff, 1}, {1, 0x7fffffff}, {0xffffffff, 0xffffffff}}) {
    EXPECT_NE(refusal_of(with_header(file, width, height, 8, 2)), "");
  }
}

TEST(DecodePng, RefusesMoreOrFewerPixelsThanTheHeaderSays) {
  const auto& file = file_of("50x41_rgb.png");
  EXPECT_NE(refusal_of(with_header(file, 50, 42, 8, 2)), "");
  EXPECT_NE(refusal_of(with_header(file, 50, 1, 8, 2)), "");
  EXPECT_NE(refusal_of(with_header(file, 1, 1, 8, 2)), "");
}

TEST(DecodePng, RefusesKindsThatDoNotExist) {
  const auto& file = file_of("50x41_rgb.png");
  EXPECT_NE(refusal_of(with_header(file, 50, 41, 3, 0)), "");
  EXPECT_NE(refusal_of(with_header(file, 50, 41, 4, 2)), "");
  EXPECT_NE(refusal_of(with_header(file, 50, 41, 8, 1)), "");
  EXPECT_NE(refusal_of(with_header(file, 50, 41, 16, 3)), "");
}

TEST(DecodePng, RefusesPalettesThatDoNotFit) {
  const auto& grey = file_of("50x41_grey.png");
  EXPECT_EQ(
      refusal_of(with_header(grey, 50, 41, 8, 3))
          .find("a.png: a PNG that cannot be decoded: IDAT: Missing PLTE before IDAT, after byte "),
      0U);
  EXPECT_NE(refusal_of(with_chunk(file_of("50x41_palette.png"), chunk("PLTE", {1, 2}))), "");
}

// As libpng does; the format leaves it open.
TEST(DecodePng, GivesBlackForColoursThatThePaletteLacks) {
  const auto one_colour = with_chunk(file_of("50x41_grey.png"), chunk("PLTE", {1, 2, 3}));
  const auto picture = decode_png(with_header(one_colour, 50, 41, 8, 3), "a.png");
  const auto& grey = samples().at("50x41_grey.png").decoded.rgb;
  for (size_t i = 0; i < grey.size(); ++i) {
    ASSERT_EQ(picture.rgb[i], grey[i] == 0 ? i % 3 + 1 : 0) << i;
  }
}

TEST(DecodePng, RefusesChunksOfAbsurdLength) {
  const auto& file = file_of("50x41_rgb.png");
  for (const uint32_t length : {0x7fffffffU, 0x80000000U, 0xffffffffU, 100000U}) {
    std::vector<uint8_t> text;
    put_big_endian(text, length);
    const auto kind = as_bytes("tEXt");
    text.insert(text.end(), kind.begin(), kind.end());
    EXPECT_NE(refusal_of(with_chunk(file, text)), "") << length;
  }
  EXPECT_NE(refusal_of(with_chunk(file, chunk("ABCD", {}))), "") << "unknown and critical";
}

TEST(DecodePng, SurvivesAnyDamage) {
  uint32_t seed = 10;
  for (const char* name : {"9x2_rgb.png", "50x41_palette4.png", "3x70_interlaced.png",
                           "9x2_depth16_kind6.png", "transparent.png"}) {
    const auto& file = file_of(name);
    expect_values_or_errors({file.begin(), file.end()}, 300, ++seed, [](const std::string& bytes) {
      const auto picture = decode_png(as_bytes(bytes), "a.png");
      EXPECT_EQ(picture.rgb.size(), static_cast<size_t>(picture.width * picture.height * 3));
    });
  }
}

// With checksums made to fit, so that the damage reaches what is behind them.
TEST(DecodePng, SurvivesDamagedChunksWithValidChecksums) {
  uint32_t seed = 20;
  for (const char* name : {"9x2_rgb.png", "50x41_palette4.png", "3x70_interlaced.png"}) {
    const auto& file = file_of(name);
    Mutator mutator(++seed);
    for (int round = 0; round < fuzz_rounds(400); ++round) {
      auto bytes = front(file, 8);
      for (size_t at = 8; at + 12 <= file.size();) {
        const size_t length = static_cast<size_t>(file[at]) << 24 | file[at + 1] << 16 |
                              file[at + 2] << 8 | file[at + 3];
        const std::string kind(file.begin() + static_cast<std::ptrdiff_t>(at + 4),
                               file.begin() + static_cast<std::ptrdiff_t>(at + 8));
        std::string content(file.begin() + static_cast<std::ptrdiff_t>(at + 8),
                            file.begin() + static_cast<std::ptrdiff_t>(at + 8 + length));
        if (round % 3 == 0 || kind != "IHDR") content = mutator.mutated(content);
        const auto damaged = chunk(kind, as_bytes(content));
        bytes.insert(bytes.end(), damaged.begin(), damaged.end());
        at += length + 12;
      }
      try {
        decode_png(bytes, "a.png");
      } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      }
    }
  }
}

TEST(WritePng, WritesWhatPillowAndWeRead) {
  const TemporaryFolder folder;
  std::mt19937 random(1);
  for (const auto& [width, height] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {31, 7}, {300, 2}}) {
    Picture picture{.width = width, .height = height};
    for (int64_t i = 0; i < width * height * 3; ++i) {
      picture.rgb.push_back(static_cast<uint8_t>(random()));
    }
    write_png(folder / "a.png", picture);
    const auto bytes = as_bytes(read_file(folder / "a.png"));
    expect_same_picture(decode_png(bytes, "a.png"), picture, "by us");
    python_output(
        "import sys\nfrom PIL import Image\n"
        "image = Image.open(sys.argv[1])\nassert image.mode == 'RGB'\n"
        "open(sys.argv[2], 'wb').write(image.tobytes())",
        {folder / "a.png", folder / "a.rgb"});
    EXPECT_EQ(as_bytes(read_file(folder / "a.rgb")), picture.rgb);
  }
}

TEST(WritePng, RefusesAPictureWithoutItsBytes) {
  EXPECT_EQ(error_of([] {
              write_png("/tmp/none.png", {.width = 2, .height = 2, .rgb = {1, 2, 3}});
            }),
            "/tmp/none.png: a picture of 2x2 must have 3 bytes per pixel and from one to 134217728 "
            "pixels, got 3 bytes");
  EXPECT_NE(error_of([] { write_png("/tmp/none.png", {}); }), "");
}

TEST(WritePng, NamesAPathThatCannotBeWritten) {
  EXPECT_EQ(error_of([] {
              write_png("/no/such/folder/a.png", {.width = 1, .height = 1, .rgb = {1, 2, 3}});
            }),
            "/no/such/folder/a.png: cannot write: No such file or directory");
}

TEST(IsPng, GoesByTheFirstBytes) {
  EXPECT_TRUE(is_png(file_of("text.png")));
  EXPECT_FALSE(is_png(as_bytes("")));
  EXPECT_FALSE(is_png(as_bytes("\x89PNG\r\n\x1a")));
  EXPECT_FALSE(is_png(as_bytes("\xff\xd8\xff\xe0 a JPEG")));
}

}  // namespace kelvin::png_file_test
