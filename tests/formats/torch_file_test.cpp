#include "kelvin/formats/torch_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "kelvin/formats/pickle.h"
#include "kelvin/formats/safetensors_file.h"
#include "tests/support/errors.h"
#include "tests/support/pickles.h"
#include "tests/support/torch_files.h"

namespace kelvin::torch_file_test {

using namespace std::string_literals;

// All files of these tests, written by one start of Python.
const TorchFiles& files() {
  static const TorchFiles files(R"(
torch.jit.script(torch.nn.Linear(2, 2)).save('script.zip')
every = [torch.arange(-3, 3).abs().reshape(2, 3).to(dtype) for dtype in dtypes]
save('dtypes', {f'{x.dtype}': x for x in every})
save('shapes', {'number': torch.tensor(1.5), 'flag': torch.tensor(True), 'none': torch.zeros(0),
                'no rows': torch.zeros(0, 3), 'no columns': torch.zeros(2, 0, 3, dtype=torch.int8),
                'ones': torch.ones(1, 1, 1), 'again': torch.zeros(0)})
x = torch.arange(120.).reshape(2, 3, 4, 5)
row = torch.arange(6, dtype=torch.int64)
save('strides', {
    'transposed': x.transpose(0, 3), 'whole': x, 'every other': x[:, ::2, 1:, ::3],
    'part': x[1], 'end': x[1, 2, 3, 1:], 'expanded': row.expand(4, 6), 'tail': row[2:],
    'repeated': row[:, None].expand(6, 3), 'last': x.to(memory_format=torch.channels_last),
    'diagonal': torch.arange(16, dtype=torch.int16).reshape(4, 4).diagonal(),
    'overlapping': row.as_strided((3, 3), (1, 1), 1), 'halves': x.half().permute(3, 1, 0, 2),
    'one axis': x[:, :1, :1, :1], 'flags': (x > 50).transpose(1, 2), 'last of all': x[1, 2, 3, 4],
    'empty part': x[2:], 'bytes': torch.arange(30, dtype=torch.uint8)[3:25:7]})
model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4),
                            torch.nn.Sequential(torch.nn.Linear(4, 2)))
save('state', model.state_dict())
save('parameters', dict(model.named_parameters()))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for p in model.parameters():
    p.grad = torch.ones_like(p)
optimizer.step()
checkpoint = {'epoch': 164, 'arch': 'resnet20', 'best_prec1': 91.73, 'is_best': True,
              'state_dict': model.state_dict(), 'optimizer': optimizer.state_dict(),
              'history': [1, 2], 'size': torch.Size([1, 2]), 'nothing': None}
save('checkpoint', checkpoint)
shared = collections.OrderedDict(w=torch.ones(2))
save('shared', {'model': shared, 'average': shared, 'list': [torch.ones(3)]})
save('unicode', {'gr\u00f6\u00dfe': torch.ones(1)})
save('nothing', {})
for protocol in [3, 4]:
    save(f'protocol{protocol}', checkpoint, pickle_protocol=protocol)
import torchvision
save('network', torchvision.models.squeezenet1_1(num_classes=10).state_dict())

both('module', model)
both('list', [torch.ones(2)])
both('tensor', torch.ones(2))
save('trained', model.state_dict())
both('module in dict', {'model': model, 'epoch': 3, 'optimizer': optimizer.state_dict()})
class Evil:
    def __reduce__(self):
        return os.system, ('touch executed',)
for name, value in {'numpy': np.ones(2), 'numpy scalar': np.float64(1),
                    'complex': torch.ones(2, dtype=torch.complex64), 'sparse': torch.eye(2).to_sparse(),
                    'quantized': torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
                    'dtype': torch.float32, 'evil': Evil()}.items():
    both(name, {'x': value})
    both(name + ' beside weights', {'x': value, **model.state_dict()})

import argparse, pathlib
arguments = argparse.Namespace(model='resnet18', lr=0.1, ids=[1, 2], device=torch.device('cpu'),
                               output=pathlib.Path('/tmp/x'))
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
average = collections.OrderedDict((k, v * 0.5) for k, v in model.state_dict().items())
save('timm', {'epoch': 3, 'arch': 'resnet18', 'state_dict': model.state_dict(),
              'optimizer': optimizer.state_dict(), 'version': 2, 'args': arguments,
              'amp_scaler': {'scale': 65536.0}, 'state_dict_ema': average, 'metric': np.float64(76.5)})
save('torchvision', {'model': model.state_dict(), 'optimizer': optimizer.state_dict(),
                     'lr_scheduler': scheduler.state_dict(), 'epoch': 3, 'args': arguments,
                     'model_ema': {'n_averaged': torch.tensor(5),
                                   **{'module.' + k: v for k, v in average.items()}},
                     'rng': [torch.get_rng_state(), np.random.get_state()]})
class Callback:
    def __init__(self): self.best = torch.tensor(0.5)
save('lightning', {'epoch': 3, 'pytorch-lightning_version': '1.9.0',
                   'state_dict': collections.OrderedDict(('model.' + k, v.double())
                                                         for k, v in model.state_dict().items()),
                   'callbacks': {Callback: {'best': 1}, ('a', 1): torch.ones(1), 'b': Callback()},
                   'hyper_parameters': collections.defaultdict(list, x=[1]), 'loops': {None: 1},
                   'optimizer_states': [optimizer.state_dict()]})
noted = collections.OrderedDict((k, v.clone()) for k, v in model.state_dict().items())
for v in noted.values(): v.note = 'kept apart'
save('attributes', noted)
save('typed', collections.OrderedDict(
    (k, torch.nn.Parameter(v) if v.is_floating_point() else v) for k, v in noted.items()))

def rezip(name, change, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile('state.zip') as old, zipfile.ZipFile(name, 'w', compression) as new:
        for member in old.namelist():
            for path, content in change(member, old.read(member)):
                new.writestr(path, content)
rezip('again', lambda name, content: [(name, content)])
rezip('elsewhere', lambda name, content: [(name.replace('state/', 'a/b/'), content)])
# Without what PyTorch 2 adds, which is read before the rest.
rezip('deflated', lambda name, content: [(name, content)] if name != 'state/byteorder' else [],
      zipfile.ZIP_DEFLATED)
rezip('missing', lambda name, content: [] if name.endswith('/3') else [(name, content)])
rezip('short', lambda name, content: [(name, content[:1] if name.endswith('/3') else content)])
rezip('twice', lambda name, content: [(name, content)] * 2)
rezip('two', lambda name, content: [(name, content), ('b/data.pkl', content)][:1 + ('pkl' in name)])
rezip('other', lambda name, content: [('text.txt', 'text')] if name == 'state/version' else [])
# PyTorch 2 says itself which comes first.
def in_byte_order(order, name, content):
    if name == 'state/byteorder': return []
    return [(name, content)] + [('state/byteorder', order)] * (name == 'state/version')
rezip('big', lambda name, content: in_byte_order('big', name, content))
rezip('little', lambda name, content: in_byte_order('little', name, content))
)");
  return files;
}

StoredTensors parsed(const std::string& name) { return parse_torch_file(files().bytes(name), "a"); }

std::string refusal_of_bytes(const std::string& bytes) {
  return error_of([&] { parse_torch_file(bytes, "a"); });
}

std::string refusal_of(const std::string& name) { return refusal_of_bytes(files().bytes(name)); }

std::string refusal_of(const OldTorchFile& file) { return refusal_of_bytes(file.bytes()); }

// The tensors are those that NumPy sees.
void expect_dumped(const StoredTensors& actual, const std::string& name) {
  const auto expected = parse_safetensors(files().bytes(name + ".dump"), name);
  ASSERT_EQ(actual.tensors.size(), expected.tensors.size()) << name;
  for (size_t i = 0; i < actual.tensors.size(); ++i) {
    const auto& tensor = actual.tensors.at(i);
    EXPECT_EQ(tensor.name, expected.tensors.at(i).name);
    EXPECT_EQ(tensor.dtype, expected.tensors.at(i).dtype) << tensor.name;
    EXPECT_EQ(tensor.shape, expected.tensors.at(i).shape) << tensor.name;
    EXPECT_EQ(tensor.bytes, expected.tensors.at(i).bytes) << tensor.name;
  }
}

TEST(TorchFile, HoldsWhatNumpySeesOfTheTensors) {
  const std::map<std::string, size_t> counts = {
      {"dtypes", 10},    {"shapes", 7},      {"strides", 17},   {"state", 9},
      {"parameters", 6}, {"checkpoint", 15}, {"shared", 2},     {"unicode", 1},
      {"nothing", 0},    {"protocol3", 15},  {"protocol4", 15}, {"network", 52}};
  for (const auto& [name, count] : counts) {
    for (const char* age : {".zip", ".old"}) {
      const auto tensors = parsed(name + age);
      EXPECT_EQ(tensors.tensors.size(), count) << name << age;
      expect_dumped(tensors, name);
    }
  }
}

TEST(TorchFile, CopiesOnlyTensorsThatDoNotLieRowByRow) {
  for (const char* age : {".zip", ".old"}) {
    EXPECT_TRUE(parsed("state"s + age).copies->empty());
    const auto tensors = parsed("strides"s + age);
    const auto copied = [&](const std::string& name) {
      const auto found = std::find_if(tensors.tensors.begin(), tensors.tensors.end(),
                                      [&](const auto& tensor) { return tensor.name == name; });
      EXPECT_NE(found, tensors.tensors.end());
      const auto* const begin = tensors.file->data();
      return found->bytes.data() < begin || found->bytes.data() >= begin + tensors.file->size();
    };
    for (const char* name : {"whole", "part", "end", "tail", "last of all"}) {
      EXPECT_FALSE(copied(name)) << name;
    }
    for (const char* name : {"transposed", "every other", "expanded", "last", "diagonal"}) {
      EXPECT_TRUE(copied(name)) << name;
    }
  }
}

TEST(TorchFile, OutlivesItsReader) {
  StoredTensors kept;
  { kept = parsed("strides.zip"); }
  expect_dumped(kept, "strides");
}

TEST(TorchFile, HasScalarsOfTheDictAsMetadata) {
  for (const char* name : {"checkpoint.zip", "checkpoint.old", "protocol4.old"}) {
    EXPECT_EQ(
        parsed(name).metadata,
        (std::map<std::string, std::string>{
            {"epoch", "164"}, {"arch", "resnet20"}, {"best_prec1", "91.73"}, {"is_best", "true"}}));
  }
}

TEST(TorchFile, CanBeWrittenAsSafetensors) {
  const auto tensors = parsed("checkpoint.old");
  const auto again = parse_safetensors(safetensors_bytes(tensors), "b");
  expect_dumped(again, "checkpoint");
  EXPECT_EQ(again.metadata, tensors.metadata);
}

TEST(TorchFile, MayLieInAnyFolderOfTheZip) {
  for (const char* name : {"again", "elsewhere", "little"}) expect_dumped(parsed(name), "state");
}

TEST(TorchFile, IsNoModel) {
  const std::string what =
      ", which is not built: only dicts of tensors are read; of a model, save model.state_dict()";
  for (const char* age : {".zip", ".old"}) {
    EXPECT_EQ(refusal_of("module"s + age),
              "a: is an object of 'torch.nn.modules.container.Sequential'" + what);
    EXPECT_EQ(refusal_of("module in dict"s + age),
              "a: 'model' is an object of 'torch.nn.modules.container.Sequential'" + what);
  }
  EXPECT_EQ(refusal_of("script.zip"),
            "a: is a program of TorchScript; must be a dict of tensors, save model.state_dict()");
}

TEST(TorchFile, ExecutesNothing) {
  for (const char* name : {"evil.zip", "evil.old"}) {
    EXPECT_TRUE(
        refusal_of(name).starts_with("a: 'x' is an object of 'posix.system', which is not "
                                     "built"))
        << name;
    expect_dumped(parsed("evil beside weights"s + std::string(name).substr(4)), "trained");
  }
  EXPECT_FALSE(files().has("executed"));
}

// As timm, torchvision's references, DeiT and Lightning save them.
TEST(TorchFile, HoldsTensorsBesideWhateverElseACheckpointHas) {
  for (const char* name : {"timm", "torchvision", "lightning", "attributes", "typed"}) {
    for (const char* age : {".zip", ".old"}) {
      const auto tensors = parsed(name + std::string(age));
      EXPECT_GT(tensors.tensors.size(), 8U) << name;
      expect_dumped(tensors, name);
    }
  }
  EXPECT_EQ(parsed("timm.zip").metadata.at("arch"), "resnet18");
  EXPECT_FALSE(parsed("timm.zip").metadata.contains("args"));
}

TEST(TorchFile, HoldsADict) {
  for (const char* age : {".zip", ".old"}) {
    EXPECT_EQ(refusal_of("list"s + age), "a: must hold a dict of tensors");
    EXPECT_EQ(refusal_of("tensor"s + age), "a: must hold a dict of tensors");
  }
}

// Complex, sparse and quantized ones, and values of NumPy.
TEST(TorchFile, SkipsWhatItCannotHold) {
  for (const char* name : {"numpy", "numpy scalar", "complex", "sparse", "quantized", "dtype"}) {
    for (const char* age : {".zip", ".old"}) {
      const auto alone = refusal_of(name + std::string(age));
      EXPECT_TRUE(alone.starts_with("a: 'x' is an object of '")) << alone;
      expect_dumped(parsed(name + " beside weights"s + age), "trained");
    }
  }
}

TEST(TorchFile, MustBeAZipAsTorchWritesIt) {
  EXPECT_EQ(refusal_of("deflated"),
            "a: 'state/data.pkl': must be stored uncompressed, has zip method 8");
  EXPECT_EQ(refusal_of("missing"), "a: 'state/data/3': is not there");
  EXPECT_EQ(refusal_of("short"),
            "a: '1.bias': storage '3' must have 4 elements of 4 bytes, has 1 bytes");
  EXPECT_EQ(refusal_of("twice"), "a: has two members 'state/data.pkl'");
  EXPECT_EQ(refusal_of("two"), "a: must have one data.pkl, has more");
  EXPECT_EQ(refusal_of("other"), "a: is a zip, but none of torch.save: has no data.pkl");
  EXPECT_EQ(refusal_of("big"), "a: must be little-endian");
  EXPECT_EQ(refusal_of_bytes("PK"), "a: too short for a file of torch.save: 2 bytes");
  EXPECT_EQ(refusal_of_bytes("hello"), "a: is not a file of torch.save, begins with 'hello'");
}

TEST(TorchFile, MustBeAsItWasWritten) {
  const auto zip = files().bytes("again");
  auto damaged = zip;
  damaged.at(damaged.find("OrderedDict")) = 'X';
  EXPECT_EQ(refusal_of_bytes(damaged), "a: 'state/data.pkl': its checksum is wrong");
  damaged = zip;
  damaged.replace(damaged.find("state/data/0") + 12, 4, "nono");
  EXPECT_EQ(refusal_of_bytes(damaged), "a: 'state/data/0': its checksum is wrong");
  damaged = zip;
  damaged.at(damaged.find("PK\x01\x02") + 8) = 1;
  EXPECT_EQ(refusal_of_bytes(damaged), "a: 'state/data.pkl': must not be encrypted");
}

TEST(TorchFile, CutOffAnywhereIsAnError) {
  for (const char* name : {"shared.zip", "shared.old", "again"}) {
    const auto whole = files().bytes(name);
    for (size_t length = 0; length < whole.size(); ++length) {
      const auto message = refusal_of_bytes(whole.substr(0, length));
      EXPECT_TRUE(message.starts_with("a: ")) << name << " " << length << ": " << message;
    }
  }
}

// The files of torch before 1.6, by hand.

const std::string kSix = "aaaabbbbccccddddeeeeffff";

OldTorchFile old_file(const PickledTensor& tensor) {
  return {.object = pickled_dict(tensor.opcodes()), .storages = {{"0", kSix}}};
}

TEST(OldTorchFile, CanBeMadeByHand) {
  const auto tensors = parse_torch_file(old_file({}).bytes(), "a");
  ASSERT_EQ(tensors.tensors.size(), 1U);
  EXPECT_EQ(tensors.tensors.at(0).bytes, kSix);
  EXPECT_EQ(tensors.tensors.at(0).shape, (std::vector<int64_t>{2, 3}));
}

// Keys and names as Python 2 wrote them, parameters as PyTorch 0.3 did.
TEST(OldTorchFile, MayBeOfPython2) {
  const std::string storage =
      "(U\x07storagectorch\nFloatStorage\nU\x01"
      "0U\x03"
      "cpuK\x06NtQ"s;
  const auto tensor = "ctorch._utils\n_rebuild_tensor\n(" + storage + "K\x02K\x04\x85K\x01\x85tR"s;
  const auto object = "ccollections\nOrderedDict\n(](](U\x01w" +
                      ("ctorch.nn.parameter\nParameter\n(" + tensor + "tR(\x88\x89}tb") + "eetR";
  const auto tensors =
      parse_torch_file(OldTorchFile{.object = object, .storages = {{"0", kSix}}}.bytes(), "a");
  ASSERT_EQ(tensors.tensors.size(), 1U);
  EXPECT_EQ(tensors.tensors.at(0).name, "w");
  EXPECT_EQ(tensors.tensors.at(0).bytes, "ccccddddeeeeffff");
}

TEST(OldTorchFile, MustBeOfTorchAndLittleEndian) {
  EXPECT_EQ(refusal_of_bytes("\x80\x02]."), "a: is a pickle, but none of torch.save");
  EXPECT_EQ(refusal_of_bytes("\x80\x02\x8a\x0a" + std::string(100, 'x')),
            "a: is a pickle, but none of torch.save");
  EXPECT_EQ(refusal_of(OldTorchFile{.protocol = "K\x07."}),
            "a: must have protocol 1001 of torch.save, has another one");
  EXPECT_EQ(refusal_of(OldTorchFile{.protocol = "N."}),
            "a: must have protocol 1001 of torch.save, has another one");
  for (const std::string system :
       {"}Vlittle_endian\nI00\ns.", "}.", "N.", "}Vlittle_endian\nNs."}) {
    EXPECT_EQ(refusal_of(OldTorchFile{.system = system}), "a: must be little-endian");
  }
}

TEST(OldTorchFile, ListsTheStoragesOfItsTensors) {
  auto file = old_file({});
  file.storages.emplace_back("extra\n", "");
  EXPECT_EQ(refusal_of(file), "a: lists storage 'extra?', which no tensor has");
  file = old_file({});
  file.storages.emplace_back("0", kSix);
  EXPECT_EQ(refusal_of(file), "a: lists storage '0' twice");
  file = old_file({});
  file.storages.clear();
  EXPECT_EQ(refusal_of(file), "a: 'x': has no storage '0'");
  file = old_file({});
  file.object = "}(Vx\n" + PickledTensor{}.opcodes() + "Vy\n" +
                PickledTensor{.type = "LongStorage"}.opcodes() + "u";
  EXPECT_EQ(refusal_of(file), "a: storage '0' has two types");
}

TEST(OldTorchFile, HasStoragesOfTheirLength) {
  EXPECT_EQ(refusal_of_bytes(old_file({}).bytes() + "x"), "a: 1 bytes follow the end");
  const auto with_count = [](int64_t count) {
    auto bytes = old_file({}).bytes();
    bytes.resize(bytes.size() - kSix.size() - sizeof(count));
    bytes.append(reinterpret_cast<const char*>(&count), sizeof(count));
    return refusal_of_bytes(bytes + kSix);
  };
  EXPECT_EQ(with_count(5), "a: 4 bytes follow the end");
  EXPECT_NE(with_count(7).find("cut off: needs 28 bytes, has 24"), std::string::npos);
  EXPECT_EQ(with_count(-1), "a: storage '0' has a length of -1");
  EXPECT_EQ(with_count(int64_t{1} << 62), "a: storage '0' has a length of 4611686018427387904");
  const auto plain = old_file({}).bytes();
  const auto list = plain.rfind("](");
  EXPECT_EQ(refusal_of_bytes(plain.substr(0, list) + "N."), "a: must have a list of storages");
  EXPECT_EQ(refusal_of_bytes(plain.substr(0, list) + "](Ne."),
            "a: lists storage '', which no tensor has");
}

TEST(OldTorchFile, HoldsViewsToTheirStorage) {
  EXPECT_EQ(refusal_of(old_file({.shape = {1000000, 1000000}, .strides = {0, 0}})),
            "a: its tensors would take more than 4 times the memory of the file");
  EXPECT_EQ(refusal_of(old_file({.offset = 1})),
            "a: 'x': lies outside of its storage, which has 6 elements");
}

}  // namespace kelvin::torch_file_test
