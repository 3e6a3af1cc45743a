#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <string>
#include <vector>

#include "kelvin/formats/cifar_binary.h"
#include "kelvin/formats/cifar_pickle.h"
#include "kelvin/formats/gzip.h"
#include "kelvin/formats/idx_file.h"
#include "kelvin/formats/mat_file.h"
#include "kelvin/formats/pickle.h"
#include "kelvin/formats/svhn_mat.h"
#include "tests/support/mats.h"
#include "tests/support/mutations.h"
#include "tests/support/pickles.h"

// Damaged files by the thousands: each gives a value that fits itself, or an Error.

namespace kelvin {
namespace {

using namespace std::string_literals;

constexpr int kRounds = 3000;

void expect_whole(const RawImages& images) {
  EXPECT_EQ(static_cast<int64_t>(images.pixels.size()), images.size() * images.image_bytes());
}

std::string packed(const std::string& bytes, int window) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

TEST(HostileFiles, OfGzip) {
  const auto valid = packed("some text that is packed, some text that is packed", 31);
  expect_values_or_errors(valid + valid, kRounds, 1, [](const std::string& bytes) {
    EXPECT_LE(gunzipped(bytes, "a", 1000).size(), 1000U);
  });
}

TEST(HostileFiles, OfIdxImages) {
  const auto valid =
      "\x00\x00\x08\x03\x00\x00\x00\x02\x00\x00\x00\x05\x00\x00\x00\x04"s + std::string(40, 'x');
  expect_values_or_errors(valid, kRounds, 2, [](const std::string& bytes) {
    const auto images = parse_idx_images(bytes, "a");
    EXPECT_EQ(images.pixels.size() + 16, bytes.size());
    EXPECT_GT(images.image_bytes(), 0);
  });
}

TEST(HostileFiles, OfIdxLabels) {
  const auto valid = "\x00\x00\x08\x01\x00\x00\x00\x04\x00\x01\x02\x03"s;
  expect_values_or_errors(valid, kRounds, 3, [](const std::string& bytes) {
    for (const auto label : parse_idx_labels(bytes, "a", 10)) EXPECT_LT(label, 10);
  });
}

TEST(HostileFiles, OfCifarBinary) {
  const auto valid = "\x01\x02"s + std::string(3072, 'x') + "\x03\x04"s + std::string(3072, 'y');
  expect_values_or_errors(valid, kRounds, 4, [](const std::string& bytes) {
    expect_whole(parse_cifar_binary(bytes, "a", {.label_bytes = 2, .label_index = 1}));
  });
}

TEST(HostileFiles, OfPickles) {
  uint32_t seed = 10;
  for (const auto& valid : in_all_protocols(
           "{'data': np.arange(12, dtype='u1').reshape(3, 4), 'labels': [1, 2, 300, -1, 2**40],"
           " 'names': ('a', b'b\\xff', 1.5, None, True), 'again': (lambda x: [x, x])([])}")) {
    expect_values_or_errors(valid, kRounds, ++seed, [](const std::string& bytes) {
      const auto pickle = parse_pickle(bytes, "a");
      if (pickle.root().kind != PickleKind::dict) return;
      const auto* data = pickle.find(pickle.root(), "data");
      if (data == nullptr || data->kind != PickleKind::array) return;
      const auto array = pickle.array(*data);
      int64_t size = array.dtype.at(1) - '0';
      for (const auto length : array.shape) size *= length;
      EXPECT_EQ(static_cast<size_t>(size), array.bytes.size());
    });
  }
}

TEST(HostileFiles, OfPickledCifar) {
  expect_values_or_errors(python2_cifar_pickle(), kRounds, 20, [](const std::string& bytes) {
    expect_whole(parse_cifar_pickle(bytes, "a", "labels", 10));
  });
}

const std::string kSmallSvhn =
    "dict(X=np.arange(32 * 32 * 3, dtype='u1').reshape(32, 32, 3, 1), y=np.array([[10]], 'u1'))";

TEST(HostileFiles, OfMat) {
  uint32_t seed = 30;
  for (const auto& valid : scipy_mats({kSmallSvhn, kSmallSvhn + ", do_compression=True"})) {
    expect_values_or_errors(valid, kRounds, ++seed, [](const std::string& bytes) {
      expect_whole(parse_svhn_mat(bytes, "a"));
    });
  }
}

TEST(HostileFiles, OfMatWithEveryTypeOfNumber) {
  const auto valid = scipy_mats(
      {"{t: np.array([[1, 2]], t) for t in ['u1', 'i1', 'u2', 'i2', 'u4', 'i4', 'u8', 'i8', 'f4',"
       " 'f8']}"});
  expect_values_or_errors(valid.at(0), kRounds, 40, [](const std::string& bytes) {
    visit_mat(bytes, "a", [](const MatArray& array) {
      EXPECT_EQ(static_cast<int64_t>(array.integers("a").size()), array.size());
    });
  });
}

// Damage before the compression, so that it reaches what lies behind the checksum.
TEST(HostileFiles, OfMatWithValidCompression) {
  const auto plain = scipy_mats({kSmallSvhn}).at(0);
  const auto head = plain.substr(0, 128);
  expect_values_or_errors(plain.substr(128), kRounds, 50, [&](const std::string& bytes) {
    const auto stream = packed(bytes, 15);
    const auto length = static_cast<uint32_t>(stream.size());
    std::string tag = "\x0f\x00\x00\x00....."s;
    std::memcpy(tag.data() + 4, &length, 4);
    visit_mat(head + tag.substr(0, 8) + stream, "a",
              [](const MatArray& array) { EXPECT_LE(array.size(), 4096); });
  });
}

}  // namespace
}  // namespace kelvin
