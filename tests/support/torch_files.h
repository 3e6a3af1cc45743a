#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/python.h"

namespace kelvin {

// Files that Debian's PyTorch saves.  It takes seconds to start, so that one script writes many:
// save(name, value) writes NAME.zip, NAME.old as before PyTorch 1.6, and NAME.dump, what NumPy sees
// of the tensors row by row as safetensors; both(name, value) writes the first two alone.
class TorchFiles {
 public:
  explicit TorchFiles(const std::string& script) {
    python_output(std::string(kPrelude) + script, {folder_.path().string()});
  }

  std::string bytes(const std::string& name) const { return read_file(folder_ / name); }
  bool has(const std::string& name) const { return std::filesystem::exists(folder_ / name); }

 private:
  static constexpr const char* kPrelude = R"(
import collections, json, os, struct, sys, warnings, zipfile
import numpy as np
import torch
warnings.simplefilter('ignore')
torch.manual_seed(1)
os.chdir(sys.argv[1])

def both(name, value, **options):
    torch.save(value, name + '.zip', **options)
    torch.save(value, name + '.old', _use_new_zipfile_serialization=False, **options)

dtypes = {torch.float64: 'F64', torch.float32: 'F32', torch.float16: 'F16', torch.int64: 'I64',
          torch.bfloat16: 'BF16', torch.int32: 'I32', torch.int16: 'I16', torch.int8: 'I8',
          torch.uint8: 'U8', torch.bool: 'BOOL'}

def flat(value, prefix=''):
    for key, item in value.items():
        if not isinstance(key, (str, int)):
            continue
        if isinstance(item, dict):
            yield from flat(item, f'{prefix}{key}.')
        elif isinstance(item, torch.Tensor):
            yield f'{prefix}{key}', item.detach()

def save(name, value, **options):
    both(name, value, **options)
    header, data = {}, b''
    for key, tensor in flat(value):
        dtype = tensor.dtype
        if dtype == torch.bfloat16:
            tensor = tensor.contiguous().view(torch.int16)
        begin, data = len(data), data + tensor.numpy().tobytes()
        header[key] = {'dtype': dtypes[dtype], 'shape': list(tensor.shape),
                       'data_offsets': [begin, len(data)]}
    text = json.dumps(header).encode()
    open(name + '.dump', 'wb').write(struct.pack('<Q', len(text)) + text + data)
)";

  TemporaryFolder folder_;
};

// Opcodes of pickles, so that a test can put a lie into any field.

inline std::string pickled_text(const std::string& text) {
  const auto length = static_cast<uint32_t>(text.size());
  return "X" + std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + text;
}

inline std::string pickled_integer(int64_t integer) {
  return "L" + std::to_string(integer) + "L\n";
}

inline std::string pickled_tuple(const std::vector<int64_t>& integers) {
  std::string opcodes = "(";
  for (const auto integer : integers) opcodes += pickled_integer(integer);
  return opcodes + "t";
}

// A tensor of PyTorch, as it is pickled.
struct PickledTensor {
  std::string type = "FloatStorage";
  std::string key = "0";
  int64_t count = 6;
  int64_t offset = 0;
  std::vector<int64_t> shape = {2, 3};
  std::vector<int64_t> strides = {3, 1};

  std::string opcodes() const {
    return "ctorch._utils\n_rebuild_tensor_v2\n((" + pickled_text("storage") + "ctorch\n" + type +
           "\n" + pickled_text(key) + pickled_text("cpu") + pickled_integer(count) + "tQ" +
           pickled_integer(offset) + pickled_tuple(shape) + pickled_tuple(strides) +
           "I00\nccollections\nOrderedDict\n)RtR";
  }
};

// A file as PyTorch before 1.6 saved it: an object, given as opcodes, and elements by their keys.
struct OldTorchFile {
  std::string object = "}";
  std::vector<std::pair<std::string, std::string>> storages = {};
  uint64_t element_bytes = 4;
  std::string protocol = "\x80\x02M\xe9\x03.";
  std::string system = "\x80\x02}" + pickled_text("little_endian") + "\x88s.";

  std::string bytes() const {
    std::string file = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19." + protocol +
                       system + "\x80\x02" + object + ".";
    file += "\x80\x02](";
    for (const auto& [key, elements] : storages) file += pickled_text(key);
    file += "e.";
    for (const auto& [key, elements] : storages) {
      const uint64_t count = elements.size() / element_bytes;
      file += std::string(reinterpret_cast<const char*>(&count), sizeof(count)) + elements;
    }
    return file;
  }
};

// A dict of one tensor, given as opcodes, under the name "x".
inline std::string pickled_dict(const std::string& tensor) {
  return "}" + pickled_text("x") + tensor + "s";
}

}  // namespace kelvin
