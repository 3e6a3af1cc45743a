#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "kelvin/core/text.h"
#include "kelvin/formats/cifar.h"
#include "kelvin/formats/gzip.h"
#include "kelvin/formats/idx_file.h"
#include "kelvin/formats/mat_file.h"
#include "kelvin/formats/npz_file.h"
#include "kelvin/formats/pickle.h"
#include "kelvin/formats/safetensors_file.h"
#include "kelvin/formats/stored_tensors.h"
#include "kelvin/formats/svhn_mat.h"
#include "kelvin/formats/torch_file.h"
#include "kelvin/formats/torch_tensors.h"
#include "tests/support/mats.h"
#include "tests/support/mutations.h"
#include "tests/support/pickles.h"
#include "tests/support/python.h"
#include "tests/support/safetensors.h"
#include "tests/support/torch_files.h"

// Damaged files by the thousands: each gives a value that fits itself, or an Error.

namespace kelvin::hostile_files_test {

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

// Tensors fit their shapes and lie where somebody holds them; what was read can be written.
void expect_whole(const StoredTensors& tensors) {
  size_t bytes = 0;
  for (const auto& tensor : tensors.tensors) {
    EXPECT_EQ(stored_tensor_bytes(tensor.dtype, tensor.shape, "a"), tensor.bytes.size());
    for (const char byte : tensor.bytes) bytes += byte == 0 ? 1 : 0;  // the sanitizers look on
  }
  const auto written = safetensors_bytes(tensors);
  EXPECT_GE(written.size(), bytes);
  EXPECT_EQ(safetensors_bytes(parse_safetensors(written, "a")), written);
}

const StoredTensors kSomeTensors = {
    .tensors =
        {{.name = "layer.weight", .dtype = "F32", .shape = {2, 2}, .bytes = "0123456789abcdef"},
         {.name = "layer.bias", .dtype = "BF16", .shape = {2}, .bytes = "0123"},
         {.name = "none", .dtype = "I64", .shape = {0, 3}, .bytes = ""},
         {.name = "count", .dtype = "U8", .shape = {}, .bytes = "0"}},
    .metadata = {{"format", "pt"}}};

// What kelvin writes: a flipped bit of the tensors is always told.
TEST(HostileFiles, OfSafetensorsWithAChecksum) {
  auto tensors = kSomeTensors;
  tensors.metadata[kChecksumKey] = checksum_text(tensors.tensors);
  const auto file = safetensors_bytes(tensors);
  const auto whole = parse_safetensors(file, "a");
  expect_values_or_errors(file, kRounds, 59, [&](const std::string& bytes) {
    const auto read = parse_safetensors(bytes, "a");
    expect_whole(read);
    if (bytes.size() != file.size() || bytes.find(kChecksumKey) == std::string::npos) return;
    EXPECT_EQ(checksum_text(read.tensors), checksum_text(whole.tensors));
  });
}

// Arrays fit their shapes.
void expect_whole(const Arrays& arrays) {
  for (const auto& [name, array] : arrays) {
    const auto element = array.dtype == "bf16" ? 2 : array.dtype.at(1) - '0';
    EXPECT_EQ(static_cast<int64_t>(array.bytes.size()), array.size() * element) << name;
  }
}

// What a script for NumPy saves as sys.argv[1].
std::string numpy_file(const std::string& script) {
  const TemporaryFolder folder;
  python_output("import sys, io, numpy as np\n" + script, {folder / "a"});
  return whole_file(folder / "a");
}

const std::string kEveryDtype = R"(
arrays = {}
for t in ['f2', '>f2', 'f4', '>f4', 'f8', 'i1', 'i2', '>i2', 'i4', 'i8', '>i8', 'u1', 'u2', 'u4', 'u8',
          '>u8', 'b1', 'V2']:
    x = np.arange(6).reshape(2, 3).astype(t) if t != 'V2' else np.zeros((2, 3), 'u2').view('V2')
    arrays[t] = np.asfortranarray(x) if len(arrays) % 2 else x
)";

TEST(HostileFiles, OfNpzOfEveryDtype) {
  uint32_t seed = 80;
  for (const char* function : {"savez", "savez_compressed"}) {
    const auto valid =
        numpy_file(kEveryDtype + "np." + function + "(open(sys.argv[1], 'wb'), **arrays)\n");
    expect_values_or_errors(valid, kRounds, ++seed,
                            [](const std::string& bytes) { expect_whole(parse_npz(bytes, "a")); });
  }
}

// A zip of one member, whose checksum and sizes are true: damage reaches the array.
std::string zipped(const std::string& content, bool is_deflated) {
  const auto stored = is_deflated ? packed(content, -15) : content;
  const auto put = [](std::string& bytes, uint64_t number, size_t width) {
    bytes.append(reinterpret_cast<const char*>(&number), width);
  };
  std::string member;
  put(member, 20, 2);
  put(member, 0, 2);
  put(member, is_deflated ? 8 : 0, 2);
  put(member, 0, 4);
  put(member, crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size()), 4);
  put(member, stored.size(), 4);
  put(member, content.size(), 4);
  put(member, 5, 2);
  put(member, 0, 2);
  std::string file = "PK\x03\x04" + member + "x.npy" + stored;
  const auto central = file.size();
  file += "PK\x01\x02" + std::string("\x14\0", 2) + member + std::string(14, '\0') + "x.npy";
  const auto length = file.size() - central;
  file += "PK\x05\x06" + std::string(4, '\0');
  put(file, 1, 2);
  put(file, 1, 2);
  put(file, length, 4);
  put(file, central, 4);
  put(file, 0, 2);
  return file;
}

TEST(HostileFiles, OfNpyWithTrueChecksums) {
  uint32_t seed = 90;
  for (const char* array :
       {"np.arange(6, dtype='f4').reshape(2, 3)", "np.asfortranarray(np.ones((2, 3), '>f2'))",
        "np.ones((2, 1), 'b1')", "np.arange(4, dtype='>u8')", "np.zeros(3, 'u2').view('V2')"}) {
    const auto valid = numpy_file("np.save(open(sys.argv[1], 'wb'), " + std::string(array) + ")");
    const auto read = [&](const std::string& npy) {
      expect_whole(parse_npz(zipped(npy, /*is_deflated=*/false), "a"));
      expect_whole(parse_npz(zipped(npy, /*is_deflated=*/true), "a"));
    };
    expect_values_or_errors(valid, kRounds, ++seed, read);
    expect_values_or_errors_of_text(valid, kRounds, ++seed, read);
  }
}

TEST(HostileFiles, OfSafetensors) {
  expect_values_or_errors(
      safetensors_bytes(kSomeTensors), kRounds, 60,
      [](const std::string& bytes) { expect_whole(parse_safetensors(bytes, "a")); });
}

// Damage that is aimed at the header, whose length stays true.
TEST(HostileFiles, OfSafetensorsWithHeadersThatLie) {
  const auto file = safetensors_bytes(kSomeTensors);
  const auto data = file.substr(file.rfind('}') + 1);
  const auto header = file.substr(8, file.rfind('}') - 7);
  const auto read = [&](const std::string& json) {
    const auto padding = data.substr(0, data.find('0'));
    expect_whole(
        parse_safetensors(safetensors_with(json + padding, data.substr(padding.size())), "a"));
  };
  expect_values_or_errors_of_text(header, 10 * kRounds, 61, read);
  expect_values_or_errors(header, kRounds, 62, read);
}

const TorchFiles& torch_samples() {
  static const TorchFiles files(R"(
x = torch.arange(12.).reshape(3, 4)
both('a', collections.OrderedDict([
    ('whole', x), ('transposed', x.t()), ('part', x[1:, ::2]), ('flag', torch.tensor([True, False])),
    ('half', torch.ones(3).half()), ('number', torch.tensor(7)), ('none', torch.zeros(0, 2)),
    ('inner', {'parameter': torch.nn.Parameter(torch.ones(2)), 1: torch.ones(1)}), ('epoch', 3)]))
import argparse
class Callback: pass
noted = torch.ones(2)
noted.note = 'kept apart'
both('b', {'state_dict': collections.OrderedDict(w=x.double(), noted=noted), 'state_dict_ema': {'w': x},
           'args': argparse.Namespace(lr=0.1, ids=[1, 2]), 'metric': np.float64(1.5),
           'rng': np.random.PCG64(1).state, 'callback': Callback(), 'set': {1, 2}, 'epoch': 3,
           'complex': torch.ones(1, dtype=torch.complex64), 'size': torch.Size([1])})
with zipfile.ZipFile('b.zip') as archive:
    open('pickle of b', 'wb').write(archive.read('b/data.pkl'))
both('five', {'w': x, 'args': argparse.Namespace(b=bytearray(b'x'))}, pickle_protocol=5)
with zipfile.ZipFile('a.zip') as archive:
    open('pickle', 'wb').write(archive.read('a/data.pkl'))
)");
  return files;
}

TEST(HostileFiles, OfTorchZips) {
  uint32_t seed = 700;
  for (const char* name : {"a.zip", "b.zip", "five.zip"}) {
    expect_values_or_errors(
        torch_samples().bytes(name), kRounds, ++seed,
        [](const std::string& bytes) { expect_whole(parse_torch_file(bytes, "a")); });
  }
}

TEST(HostileFiles, OfOldTorchFiles) {
  uint32_t seed = 710;
  for (const char* name : {"a.old", "b.old", "five.old"}) {
    expect_values_or_errors(
        torch_samples().bytes(name), kRounds, ++seed,
        [](const std::string& bytes) { expect_whole(parse_torch_file(bytes, "a")); });
  }
}

// Damage to the pickle alone: checksums of the zip would hide it.
TEST(HostileFiles, OfPicklesOfTorch) {
  const std::string storage(128, '\1');
  TorchStorages storages;
  const std::vector<std::string> keys = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  for (const auto& key : keys) storages[key] = storage;
  for (const char* name : {"pickle", "pickle of b"}) {
    expect_values_or_errors(
        torch_samples().bytes(name), 2 * kRounds, 72, [&](const std::string& bytes) {
          const auto pickle = parse_pickle(bytes, "a", torch_names());
          const auto tensors = torch_tensors(pickle, storages, bytes.size() + storage.size(), "a");
          size_t copied = 0;
          for (const auto& copy : *tensors.copies) copied += copy.size();
          EXPECT_LE(copied, 4 * (bytes.size() + storage.size()) + 65536);
          expect_whole(tensors);
        });
  }
}

// Numbers of a pickle as text, so that offsets, sizes and strides take every extreme.
TEST(HostileFiles, OfOldTorchFilesWithViewsThatLie) {
  const std::string valid = "6,1,2,2,3,1";
  expect_values_or_errors_of_text(valid, 10 * kRounds, 73, [](const std::string& text) {
    std::vector<int64_t> numbers;
    for (const auto& part : split(text, ',')) {
      numbers.push_back(std::strtoll(part.c_str(), nullptr, 10));
    }
    numbers.resize(6);
    const PickledTensor tensor{.count = numbers[0],
                               .offset = numbers[1],
                               .shape = {numbers[2], numbers[3]},
                               .strides = {numbers[4], numbers[5]}};
    const OldTorchFile file{.object = pickled_dict(tensor.opcodes()),
                            .storages = {{"0", "aaaabbbbccccddddeeeeffff"}}};
    const auto tensors = parse_torch_file(file.bytes(), "a");
    // Element by element, by the definition of a view.
    const auto& shape = tensor.shape;
    for (int64_t i = 0; i < shape[0] * shape[1]; ++i) {
      const auto place =
          tensor.offset + i / shape[1] * tensor.strides[0] + i % shape[1] * tensor.strides[1];
      ASSERT_EQ(tensors.tensors.at(0).bytes.at(4 * static_cast<size_t>(i)), 'a' + place);
    }
    expect_whole(tensors);
  });
}

}  // namespace kelvin::hostile_files_test
