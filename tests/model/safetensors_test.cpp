#include "kelvin/model/safetensors.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstring>
#include <fstream>
#include <random>
#include <string>

#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/python.h"

namespace kelvin {
namespace {

NamedTensors some_tensors() {
  return {{"a.weight", torch::tensor({{1.5F, -2.0F, 0.1F}, {4.0F, 5.0F, 6.0F}})},
          {"b", torch::tensor({0.1, -1e300}, torch::kFloat64)},
          {"counter", torch::tensor(int64_t{1} << 40)},
          {"empty", torch::empty({0, 3})},
          {"pixels", torch::arange(5, torch::kUInt8)}};
}

// A safetensors file whose header is `json`, followed by `data_bytes` zeros.
std::string file_of(const std::string& json, size_t data_bytes) {
  const uint64_t length = json.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + json + std::string(data_bytes, '\0');
}

class Safetensors : public testing::Test {
 protected:
  std::string path() const { return folder_ / "model.safetensors"; }

  NamedTensors read_bytes(const std::string& bytes) const {
    std::ofstream(path(), std::ios::binary) << bytes;
    return read_safetensors(path());
  }

  // The message without the path it must open with.
  std::string error_in(const std::string& json, size_t data_bytes) const {
    auto message = error_of([&] { read_bytes(file_of(json, data_bytes)); });
    EXPECT_TRUE(message.starts_with(path() + ": ")) << message;
    return message.substr(std::min(message.size(), path().size() + 2));
  }

  TemporaryFolder folder_;
};

TEST_F(Safetensors, ComeBackAsTheyWereWritten) {
  const auto tensors = some_tensors();
  write_safetensors(path(), tensors);
  const auto back = read_safetensors(path());
  ASSERT_EQ(back.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    ASSERT_TRUE(back.contains(name)) << name;
    EXPECT_EQ(back.at(name).scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(back.at(name).equal(tensor)) << name;
  }
}

TEST_F(Safetensors, AreTheSameBytesWhenWrittenAgain) {
  write_safetensors(path(), some_tensors());
  const auto first = whole_file(path());
  write_safetensors(folder_ / "again", read_safetensors(path()));
  EXPECT_EQ(whole_file(folder_ / "again"), first);
}

TEST_F(Safetensors, AreStoredRowByRowWhateverTheMemoryFormat) {
  const auto tensor = torch::arange(24, torch::kFloat32).view({1, 2, 3, 4});
  write_safetensors(path(), {{"x", tensor}});
  write_safetensors(folder_ / "last",
                    {{"x", tensor.contiguous(torch::MemoryFormat::ChannelsLast)}});
  EXPECT_EQ(whole_file(folder_ / "last"), whole_file(path()));
}

TEST_F(Safetensors, CanBeReadByTheFormatsDescription) {
  write_safetensors(path(), some_tensors());
  const auto output = python_output(R"(
import json, struct, sys
import numpy as np
raw = open(sys.argv[1], 'rb').read()
length, = struct.unpack('<Q', raw[:8])
assert length % 8 == 0
header = json.loads(raw[8:8 + length])
types = {'F32': '<f4', 'F64': '<f8', 'I64': '<i8', 'U8': 'u1'}
for name, entry in sorted(header.items()):
    begin, end = entry['data_offsets']
    data = np.frombuffer(raw[8 + length + begin:8 + length + end], types[entry['dtype']])
    print(name, data.reshape(entry['shape']).tolist())
)",
                                    {path()});
  EXPECT_EQ(output,
            "a.weight [[1.5, -2.0, 0.10000000149011612], [4.0, 5.0, 6.0]]\n"
            "b [0.1, -1e+300]\n"
            "counter 1099511627776\n"
            "empty []\n"
            "pixels [0, 1, 2, 3, 4]\n");
}

TEST_F(Safetensors, IgnoreMetadata) {
  const auto back = read_bytes(file_of(
      R"({"__metadata__":{"format":"pt"},"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
      2));
  ASSERT_EQ(back.size(), 1U);
  EXPECT_TRUE(back.at("x").equal(torch::zeros({2}, torch::kUInt8)));
}

TEST_F(Safetensors, CutOffAnywhereAreAnError) {
  write_safetensors(path(), some_tensors());
  const auto whole = whole_file(path());
  for (size_t length = 0; length < whole.size(); ++length) {
    const auto message = error_of([&] { read_bytes(whole.substr(0, length)); });
    EXPECT_TRUE(message.starts_with(path() + ": ")) << length << ": " << message;
  }
}

TEST_F(Safetensors, DamagedAnywhereAreAnErrorOrTensorsButNeverACrash) {
  write_safetensors(path(), some_tensors());
  const auto whole = whole_file(path());
  std::mt19937_64 random(1);
  int errors = 0;
  for (int trial = 0; trial < 600; ++trial) {
    auto damaged = whole;
    const auto bytes = 1 + random() % 3;
    for (uint64_t i = 0; i < bytes; ++i) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    try {
      read_bytes(damaged);
    } catch (const Error&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, 200);
}

TEST_F(Safetensors, RejectAHeaderThatIsNoObject) {
  EXPECT_EQ(error_in("[1, 2]", 0), "the header is not a JSON object");
  EXPECT_EQ(error_in("{\"x\": ", 0), "the header is not a JSON object");
}

TEST_F(Safetensors, RejectAnEntryWithoutItsFields) {
  EXPECT_EQ(error_in(R"({"x":{"dtype":"U8","shape":[2]}})", 2),
            "'x' needs dtype, shape and data_offsets");
  EXPECT_EQ(error_in(R"({"x":7})", 2), "'x' needs dtype, shape and data_offsets");
}

TEST_F(Safetensors, RejectAnUnknownDtype) {
  EXPECT_EQ(error_in(R"({"x":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}})", 2),
            "'x': dtype must be F32, F64, I64 or U8, got 'BF16'");
}

TEST_F(Safetensors, RejectOffsetsOutsideOfTheFile) {
  for (const char* offsets : {"[0,3]", "[2,0]", "[0]", "[0,18446744073709551615]"}) {
    EXPECT_EQ(
        error_in(std::string(R"({"x":{"dtype":"U8","shape":[2],"data_offsets":)") + offsets + "}}",
                 2),
        "'x': data_offsets lie outside of the file")
        << offsets;
  }
}

TEST_F(Safetensors, RejectAShapeThatDoesNotFitItsBytes) {
  EXPECT_EQ(error_in(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
            "'x': shape needs 8 bytes, data_offsets have 4");
  EXPECT_EQ(error_in(R"({"x":{"dtype":"U8","shape":[-2],"data_offsets":[0,2]}})", 2),
            "'x': shape has a negative size");
  EXPECT_EQ(
      error_in(R"({"x":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,4]}})", 4),
      "'x': shape is too large");
  // 0 * anything is 0 bytes, but no tensor can have such strides.
  EXPECT_EQ(
      error_in(R"({"x":{"dtype":"U8","shape":[0,4611686018427387904,8],"data_offsets":[0,0]}})", 0),
      "'x': shape is too large");
}

TEST_F(Safetensors, RejectBytesThatBelongToNoTensor) {
  EXPECT_EQ(error_in(R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 3),
            "tensors cover 2 of 3 bytes");
  EXPECT_EQ(error_in(R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3),
            "there is a hole or an overlap at byte 0 of the data");
}

TEST_F(Safetensors, RejectTensorsThatShareBytes) {
  EXPECT_EQ(error_in(R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                     R"("y":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
                     4),
            "there is a hole or an overlap at byte 0 of the data");
}

TEST_F(Safetensors, RejectToWriteOtherTypes) {
  EXPECT_EQ(error_of([&] {
              write_safetensors(path(), {{"x", torch::zeros(2, torch::kInt32)}});
            }),
            "write_safetensors: 'x' must be F32, F64, I64 or U8, got Int");
}

std::shared_ptr<Model> small_model(uint64_t seed) {
  Settings settings("model", {{"width", 0.125}});
  torch::manual_seed(seed);
  return models().find("resnet10").build({}, settings);
}

class Weights : public Safetensors {};

TEST_F(Weights, AreTheSameAfterLoading) {
  const auto model = small_model(1);
  model->forward(torch::randn({4, 3, 32, 32}));  // moves the running statistics
  save_weights(path(), *model);
  const auto other = small_model(2);
  load_weights(path(), *other);
  model->eval();
  other->eval();
  const auto images = torch::randn({2, 3, 32, 32});
  EXPECT_TRUE(other->forward(images).equal(model->forward(images)));
  save_weights(folder_ / "again", *other);
  EXPECT_EQ(whole_file(folder_ / "again"), whole_file(path()));
}

// What loading says when `change` was done to the tensors of a good file.
template <class Change>
std::string error_after(const std::string& path, const Change& change) {
  const auto model = small_model(1);
  save_weights(path, *model);
  auto tensors = read_safetensors(path);
  change(tensors);
  write_safetensors(path, tensors);
  const auto other = small_model(2);
  const auto before = other->parameters().front().clone();
  auto message = error_of([&] { load_weights(path, *other); });
  EXPECT_TRUE(other->parameters().front().equal(before)) << "a refused file changed the model";
  EXPECT_TRUE(message.starts_with(path + ": ")) << message;
  return message.substr(std::min(message.size(), path.size() + 2));
}

TEST_F(Weights, MustAllBeThere) {
  EXPECT_EQ(error_after(path(), [](auto& tensors) { tensors.erase("fc.bias"); }),
            "has no tensor 'fc.bias'");
}

TEST_F(Weights, MustBelongToTheModel) {
  EXPECT_EQ(error_after(path(), [](auto& tensors) { tensors["extra"] = torch::zeros({1}); }),
            "the model has no tensor 'extra'");
}

TEST_F(Weights, MustHaveTheModelsShape) {
  EXPECT_EQ(error_after(path(), [](auto& tensors) { tensors["fc.bias"] = torch::zeros({9}); }),
            "'fc.bias' must be [10], got [9]");
}

TEST_F(Weights, MustHaveTheModelsType) {
  EXPECT_EQ(
      error_after(path(),
                  [](auto& tensors) { tensors["fc.bias"] = torch::zeros({10}, torch::kFloat64); }),
      "'fc.bias' must be Float, got Double");
}

}  // namespace
}  // namespace kelvin
