#include "kelvin/formats/weights_file.h"

#include <gtest/gtest.h>

#include <string>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/safetensors.h"
#include "tests/support/torch_files.h"

namespace kelvin::weights_file_test {

using namespace std::string_literals;

class WeightsFile : public testing::Test {
 protected:
  StoredTensors read_bytes(const std::string& bytes) const {
    write_file_atomically(path(), bytes);
    return read_weights_file(path());
  }

  // The message without the path it must open with.
  std::string refusal_of(const std::string& bytes) const {
    const auto message = error_of([&] { read_bytes(bytes); });
    EXPECT_TRUE(message.starts_with(path() + ": ")) << message;
    return message.substr(std::min(message.size(), path().size() + 2));
  }

  std::string path() const { return folder_ / "weights.any"; }

  TemporaryFolder folder_;
};

TEST_F(WeightsFile, MayBeSafetensors) {
  const auto tensors = read_bytes(
      safetensors_with(R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "ab"));
  ASSERT_EQ(tensors.tensors.size(), 1U);
  EXPECT_EQ(tensors.tensors.at(0).bytes, "ab");
}

// The length of a header may begin as other formats do.
TEST_F(WeightsFile, IsSafetensorsWhateverTheLengthOfTheHeader) {
  for (const size_t length : {0x80, 0x0280, 0x4b50}) {
    const auto tensors = read_bytes(safetensors_with("{" + std::string(length - 2, ' ') + "}", ""));
    EXPECT_TRUE(tensors.tensors.empty());
  }
}

TEST_F(WeightsFile, MayBeOfTorch) {
  const TorchFiles files("both('a', {'x': torch.tensor([97, 98], dtype=torch.uint8)})");
  for (const char* name : {"a.zip", "a.old"}) {
    const auto tensors = read_bytes(files.bytes(name));
    ASSERT_EQ(tensors.tensors.size(), 1U);
    EXPECT_EQ(tensors.tensors.at(0).name, "x");
    EXPECT_EQ(tensors.tensors.at(0).bytes, "ab");
  }
}

TEST_F(WeightsFile, SaysWhatIsWrongWithFilesOfTorch) {
  EXPECT_EQ(refusal_of("\x80\x02]."), "is a pickle, but none of torch.save");
  EXPECT_EQ(refusal_of("PK\x03\x04"), "too short for a file of torch.save: 4 bytes");
}

TEST_F(WeightsFile, SaysWhatIsWrongWithSafetensors) {
  EXPECT_EQ(refusal_of(safetensors_with("{}", "abc")), "tensors cover 0 of 3 bytes");
}

TEST_F(WeightsFile, IsNothingElse) {
  EXPECT_EQ(refusal_of("<html><body>\nNot Found"),
            "must be a file of weights, safetensors or of torch.save, begins with "
            "'<html><body>?Not'");
  EXPECT_EQ(refusal_of(""),
            "must be a file of weights, safetensors or of torch.save, begins with ''");
}

TEST_F(WeightsFile, MustBeThere) {
  EXPECT_EQ(error_of([] { read_weights_file("/no/such.pth"); }),
            "/no/such.pth: cannot read: No such file or directory");
  EXPECT_EQ(error_of([&] { read_weights_file(folder_.path()); }),
            folder_.path().string() + ": is a folder, must be a file");
  EXPECT_EQ(error_of([] { read_weights_file("/dev/zero"); }),
            "/dev/zero: must be a file, is a device or a pipe");
}

}  // namespace kelvin::weights_file_test
