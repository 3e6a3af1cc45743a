#include "kelvin/model/tensors_file.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>

#include "tests/support/errors.h"
#include "tests/support/python.h"

namespace kelvin::tensors_file_test {

NamedTensors some_tensors() {
  return {{"a.weight", torch::tensor({{1.5F, -2.0F, 0.1F}, {4.0F, 5.0F, 6.0F}})},
          {"b", torch::tensor({0.1, -1e300}, torch::kFloat64)},
          {"brief", torch::tensor({1.5F, -3.0F}).to(torch::kBFloat16)},
          {"counter", torch::tensor(int64_t{1} << 40)},
          {"empty", torch::empty({0, 3})},
          {"half", torch::tensor({0.5F, 2.0F}).to(torch::kFloat16)},
          {"is", torch::tensor({true, false})},
          {"pixels", torch::arange(5, torch::kUInt8)},
          {"short", torch::tensor({-3, 4}, torch::kInt16)}};
}

class TensorsFile : public testing::Test {
 protected:
  std::string path() const { return folder_ / "model.safetensors"; }
  TemporaryFolder folder_;
};

TEST_F(TensorsFile, ComesBackAsItWasWritten) {
  const auto tensors = some_tensors();
  write_safetensors(path(), tensors);
  const auto back = read_tensors(path());
  ASSERT_EQ(back.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    ASSERT_TRUE(back.contains(name)) << name;
    EXPECT_EQ(back.at(name).scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(back.at(name).equal(tensor)) << name;
  }
}

TEST_F(TensorsFile, HasTheSameBytesWhenWrittenAgain) {
  write_safetensors(path(), some_tensors(), {{"from", "a test"}});
  write_safetensors(folder_ / "again", read_tensors(path()), {{"from", "a test"}});
  EXPECT_EQ(whole_file(folder_ / "again"), whole_file(path()));
}

TEST_F(TensorsFile, IsStoredRowByRowWhateverTheMemoryFormat) {
  const auto tensor = torch::arange(24, torch::kFloat32).view({1, 2, 3, 4});
  write_safetensors(path(), {{"x", tensor}});
  write_safetensors(folder_ / "last",
                    {{"x", tensor.contiguous(torch::MemoryFormat::ChannelsLast)}});
  EXPECT_EQ(whole_file(folder_ / "last"), whole_file(path()));
}

TEST_F(TensorsFile, CanBeReadByTheFormatsDescription) {
  write_safetensors(path(), {{"a", torch::tensor({{1.5F, -2.0F}})}, {"n", torch::tensor(7)}});
  const auto output = python_output(R"(
import json, struct, sys
import numpy as np
raw = open(sys.argv[1], 'rb').read()
length = struct.unpack('<Q', raw[:8])[0]
header = json.loads(raw[8:8 + length])
assert set(header.pop('__metadata__')) == {'kelvin.crc32c'}, header
for name, entry in sorted(header.items()):
    begin, end = entry['data_offsets']
    kind = {'F32': '<f4', 'I64': '<i8'}[entry['dtype']]
    data = np.frombuffer(raw[8 + length + begin:8 + length + end], kind)
    print(name, data.reshape(entry['shape']).tolist())
)",
                                    {path()});
  EXPECT_EQ(output, "a [[1.5, -2.0]]\nn 7\n");
}

TEST_F(TensorsFile, ReadsWhatTorchSaved) {
  for (const char* options : {"", ", _use_new_zipfile_serialization=False"}) {
    python_output(std::string("import torch, sys\n") +
                      "torch.save({'w': torch.arange(6.).view(2, 3).t(), 'n': torch.tensor(3)}, "
                      "sys.argv[1]" +
                      options + ")\n",
                  {path()});
    const auto tensors = read_tensors(path());
    ASSERT_EQ(tensors.size(), 2U);
    EXPECT_TRUE(tensors.at("w").equal(torch::arange(6.0F).view({2, 3}).t()));
    EXPECT_EQ(tensors.at("n").item<int64_t>(), 3);
  }
}

TEST_F(TensorsFile, RunsNoCodeOfAPickle) {
  const auto trap = folder_ / "trap";
  python_output(
      "import sys, torch\n"
      "class Trap:\n"
      "    def __reduce__(self):\n"
      "        import os\n"
      "        return (os.system, ('touch ' + sys.argv[2],))\n"
      "torch.save({'w': Trap()}, sys.argv[1])\n",
      {path(), trap});
  const auto message = error_of([&] { read_tensors(path()); });
  EXPECT_TRUE(message.starts_with(path() + ": ")) << message;
  EXPECT_NE(message.find("system"), std::string::npos) << message;
  EXPECT_FALSE(std::filesystem::exists(trap));
}

TEST_F(TensorsFile, DoesNotMultiplyWhatAFileShares) {
  python_output(
      "import sys, torch\nt = torch.zeros(100000)\n"
      "torch.save({f'a{i}': t for i in range(100)}, sys.argv[1])\n",
      {path()});
  EXPECT_EQ(error_of([&] { read_tensors(path()); }),
            path() + ": its tensors would take more than 4 times the file");
}

TEST_F(TensorsFile, RejectsToWriteOtherTypes) {
  EXPECT_EQ(error_of([&] {
              write_safetensors(path(), {{"x", torch::zeros(2, torch::kComplexFloat)}});
            }),
            "write_safetensors: 'x' must be of floating, integer or boolean type, is "
            "ComplexFloat");
}

}  // namespace kelvin::tensors_file_test
