#include "kelvin/formats/torch_file.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/formats/byte_reader.h"
#include "kelvin/formats/pickle.h"
#include "kelvin/formats/stored_tensors.h"
#include "kelvin/formats/torch_tensors.h"
#include "kelvin/formats/zip_file.h"

namespace kelvin {
namespace {

constexpr std::string_view kOrderedDict = "collections.OrderedDict";
constexpr std::string_view kTensor = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view kOldTensor = "torch._utils._rebuild_tensor";
constexpr std::string_view kParameter = "torch._utils._rebuild_parameter";
constexpr std::string_view kOldParameter = "torch.nn.parameter.Parameter";
constexpr std::string_view kSize = "torch.Size";
constexpr std::string_view kParameterWithState = "torch._utils._rebuild_parameter_with_state";
constexpr std::string_view kTyped = "torch._tensor._rebuild_from_type_v2";
constexpr std::string_view kOldTyped = "torch._tensor._rebuild_from_type";
constexpr std::string_view kDefaultDict = "collections.defaultdict";
constexpr std::array kTorchNames = {
    kOrderedDict,        kDefaultDict, kTensor,   kOldTensor,    kParameter,
    kParameterWithState, kTyped,       kOldTyped, kOldParameter, kSize};

constexpr size_t kMostKey = 256;  // keys are numbers, and are compared often

struct StorageType {
  std::string_view name;
  std::string_view dtype;
};
// The last ones are of tensors that are skipped, but whose storages have to be told apart.
constexpr std::array<StorageType, 15> kStorages = {{{"torch.DoubleStorage", "F64"},
                                                    {"torch.FloatStorage", "F32"},
                                                    {"torch.HalfStorage", "F16"},
                                                    {"torch.BFloat16Storage", "BF16"},
                                                    {"torch.LongStorage", "I64"},
                                                    {"torch.IntStorage", "I32"},
                                                    {"torch.ShortStorage", "I16"},
                                                    {"torch.CharStorage", "I8"},
                                                    {"torch.ByteStorage", "U8"},
                                                    {"torch.BoolStorage", "BOOL"},
                                                    {"torch.ComplexFloatStorage", "C64"},
                                                    {"torch.ComplexDoubleStorage", "C128"},
                                                    {"torch.QInt8Storage", "QI8"},
                                                    {"torch.QUInt8Storage", "QU8"},
                                                    {"torch.QInt32Storage", "QI32"}}};

// Nothing if the name is not that of a storage.
std::string_view dtype_of_storage(std::string_view name) {
  for (const auto& storage : kStorages) {
    if (storage.name == name) return storage.dtype;
  }
  return {};
}

bool are_integers(const Pickle& pickle, const PickleValue& value) {
  return value.kind == PickleKind::tuple &&
         std::all_of(value.items.begin(), value.items.end(),
                     [&](size_t place) { return pickle.at(place).kind == PickleKind::integer; });
}

PickleValue object_of(std::string_view name) { return {.kind = PickleKind::object, .text = name}; }

// The dict that OrderedDict(...) is; Python 2 gives it a list of pairs.
PickleValue ordered_dict(const Pickle& pickle, const std::vector<size_t>& arguments,
                         const std::string& where) {
  PickleValue dict{.kind = PickleKind::dict};
  if (arguments.empty()) return dict;
  const auto& pairs = pickle.at(arguments.front());
  check(arguments.size() == 1 && pairs.kind == PickleKind::list, where,
        ": OrderedDict must have nothing or a list of pairs as arguments");
  dict.items.reserve(2 * pairs.items.size());
  for (const auto place : pairs.items) {
    const auto& pair = pickle.at(place);
    const bool is_pair =
        (pair.kind == PickleKind::list || pair.kind == PickleKind::tuple) && pair.items.size() == 2;
    check(is_pair, where, ": OrderedDict must have nothing or a list of pairs as arguments");
    dict.items.insert(dict.items.end(), pair.items.begin(), pair.items.end());
  }
  return dict;
}

// storage, offset, shape, strides; then whether it needs gradients, its hooks, and metadata that
// say that the values are to be negated or conjugated.
PickleValue tensor(const Pickle& pickle, const std::vector<size_t>& arguments, bool is_old,
                   const std::string& where) {
  const auto known =
      is_old ? arguments.size() == 4 : arguments.size() == 6 || arguments.size() == 7;
  // A storage of a type that is not known: of one that is skipped.
  if (known && pickle.at(arguments[0]).kind == PickleKind::object) {
    return object_of("torch.Tensor");
  }
  check(known && pickle.at(arguments[0]).kind == PickleKind::storage &&
            pickle.at(arguments[1]).kind == PickleKind::integer &&
            are_integers(pickle, pickle.at(arguments[2])) &&
            are_integers(pickle, pickle.at(arguments[3])),
        where, ": a tensor must have a storage, an offset, a shape and strides");
  if (stored_element_bytes(pickle.at(arguments[0]).text) == 0) return object_of("torch.Tensor");
  if (arguments.size() == 7) {
    const auto& metadata = pickle.at(arguments[6]);
    check(metadata.kind == PickleKind::none ||
              (metadata.kind == PickleKind::dict && metadata.items.empty()),
          where, ": a tensor must hold its values as they are, this one has metadata");
  }
  return {.kind = PickleKind::tensor, .items = {arguments.begin(), arguments.begin() + 4}};
}

class TorchNames final : public PickleNames {
 public:
  PickleValue known(Pickle& pickle, std::string_view module, std::string_view name,
                    const std::string& /*where*/) const override {
    const auto full = pickle_name(module, name);
    for (const auto& storage : kStorages) {
      if (storage.name == full) return {.kind = PickleKind::name, .text = storage.name};
    }
    const auto* const found = std::find(kTorchNames.begin(), kTorchNames.end(), full);
    if (found != kTorchNames.end()) return {.kind = PickleKind::name, .text = *found};
    // Shown, if at all, in a message; many marks must not take more memory than the file.
    return object_of(pickle.keep(shown_text(full)));
  }

  PickleValue reduced(Pickle& pickle, const PickleValue& name, const PickleValue& arguments,
                      const std::string& where) const override {
    const auto& items = arguments.items;
    if (name.text == kOrderedDict) return ordered_dict(pickle, items, where);
    if (name.text == kDefaultDict) return {.kind = PickleKind::dict};  // of what makes its defaults
    if (name.text == kTyped || name.text == kOldTyped) return typed(pickle, items, where);
    if (name.text == kTensor || name.text == kOldTensor) {
      return tensor(pickle, items, name.text == kOldTensor, where);
    }
    if (name.text == kSize) {
      check(items.size() == 1 && are_integers(pickle, pickle.at(items[0])), where,
            ": torch.Size must have a tuple of integers");
      return pickle.at(items[0]);
    }
    const bool is_parameter =
        name.text == kParameter || name.text == kOldParameter || name.text == kParameterWithState;
    check(is_parameter, where, ": ", name.text, " must not be called");
    const auto kind = items.empty() ? PickleKind::none : pickle.at(items[0]).kind;
    check(kind == PickleKind::tensor || kind == PickleKind::object, where,
          ": a parameter must have a tensor");
    return pickle.at(items[0]);
  }

  // Of a tensor with attributes: function, class, arguments of the function, attributes.
  PickleValue typed(Pickle& pickle, const std::vector<size_t>& items,
                    const std::string& where) const {
    const bool is_call = items.size() >= 3 && pickle.at(items[2]).kind == PickleKind::tuple;
    check(is_call, where, ": a tensor with attributes must have a function, a class and arguments");
    const auto function = pickle.at(items[0]);
    if (function.kind == PickleKind::object) return function;
    check(
        function.kind == PickleKind::name && function.text != kTyped && function.text != kOldTyped,
        where, ": a tensor with attributes must have a function that makes a tensor");
    const auto arguments = pickle.at(items[2]);
    return reduced(pickle, function, arguments, where);
  }

  // A dict's attributes, and a parameter's hooks, are no weights.
  void build(Pickle& pickle, size_t object, const PickleValue& /*state*/,
             const std::string& where) const override {
    const auto kind = pickle.at(object).kind;
    check(kind == PickleKind::dict || kind == PickleKind::tensor, where,
          ": BUILD must have a dict or a tensor");
  }

  // ('storage', type, key, device, count), and before torch 1.6 a view, which is None; then there
  // are also ('module', class, file, source).
  std::optional<PickleValue> persistent(const Pickle& pickle, const PickleValue& id,
                                        const std::string& where) const override {
    const auto& items = id.items;
    const auto word = id.kind == PickleKind::tuple && !items.empty() ? pickle.at(items[0]).text
                                                                     : std::string_view{};
    if (word == "module" && items.size() == 4 && pickle.at(items[1]).kind == PickleKind::object) {
      return pickle.at(items[1]);
    }
    const bool is_storage = word == "storage" && (items.size() == 5 || items.size() == 6);
    check(is_storage, where, ": a persistent id must be that of a storage");
    const auto& type = pickle.at(items[1]);
    if (type.kind == PickleKind::object) return type;
    const auto dtype =
        type.kind == PickleKind::name ? dtype_of_storage(type.text) : std::string_view{};
    const auto& count = pickle.at(items[4]);
    const auto& key = pickle.at(items[2]);
    check(!dtype.empty() && is_pickle_text(key) && key.text.size() <= kMostKey &&
              count.kind == PickleKind::integer && count.integer >= 0,
          where, ": a storage must have a type, a key and a count of elements");
    check(items.size() == 5 || pickle.at(items[5]).kind == PickleKind::none, where,
          ": a storage that is a view of another one is not supported");
    return PickleValue{.kind = PickleKind::storage, .text = dtype, .items = {items[2], items[4]}};
  }
};

}  // namespace

const PickleNames& torch_names() {
  static const TorchNames names;
  return names;
}

uint64_t torch_element_bytes(std::string_view dtype) {
  constexpr std::array<std::pair<std::string_view, uint64_t>, 5> kSkipped = {
      {{"C64", 8}, {"C128", 16}, {"QI8", 1}, {"QU8", 1}, {"QI32", 4}}};
  for (const auto& [name, bytes] : kSkipped) {
    if (name == dtype) return bytes;
  }
  return stored_element_bytes(dtype);
}

namespace {

// The members of a zip by name.
class TorchZip {
 public:
  TorchZip(std::string_view file, const std::string& where) : file_(file, where) {
    for (const auto& member : zip_members(file_, "a file of torch.save")) {
      const bool is_new = members_.emplace(member.name, member).second;
      check(is_new, where, ": has two members '", shown_text(member.name), "'");
    }
    prefix_ = folder();
    check(!is_script(), where,
          ": is a program of TorchScript; must be a dict of tensors, save model.state_dict()");
    check(!members_.contains(prefix_ + "byteorder") || bytes_of("byteorder") == "little", where,
          ": must be little-endian");
  }

  // The bytes of a member in the archive's folder.
  std::string_view bytes_of(const std::string& name) const {
    const auto where = file_.where() + ": '" + shown_text(prefix_ + name) + "'";
    const auto found = members_.find(prefix_ + name);
    check(found != members_.end(), where, ": is not there");
    const auto& member = found->second;
    check(!member.is_encrypted, where, ": must not be encrypted");
    check(member.method == kZipStored && member.packed_size == member.size, where,
          ": must be stored uncompressed, has zip method ", member.method);
    const auto bytes = packed_bytes(file_, member, where);
    check_zip_crc(bytes, member, where);
    return bytes;
  }

 private:
  // All members lie in one folder, whose name is that of the file when it was saved.
  std::string folder() const {
    constexpr std::string_view kPickle = "/data.pkl";
    std::string folder;
    for (const auto& [name, member] : members_) {
      if (!name.ends_with(kPickle)) continue;
      check(folder.empty(), file_.where(), ": must have one data.pkl, has more");
      folder = name.substr(0, name.size() - kPickle.size() + 1);
    }
    check(!folder.empty(), file_.where(), ": is a zip, but none of torch.save: has no data.pkl");
    return folder;
  }

  bool is_script() const {
    const auto code = members_.lower_bound(prefix_ + "code/");
    return members_.contains(prefix_ + "constants.pkl") ||
           (code != members_.end() && code->first.starts_with(prefix_ + "code/"));
  }

  ByteReader file_;
  std::map<std::string_view, ZipMember> members_;
  std::string prefix_;
};

StoredTensors parse_zip(std::string_view file, const std::string& where) {
  const TorchZip zip(file, where);
  const auto inner = where + ": data.pkl";
  const auto pickle = parse_pickle(zip.bytes_of("data.pkl"), inner, torch_names());
  TorchStorages storages;
  for (size_t place = 0; place < pickle.size(); ++place) {
    const auto& value = pickle.at(place);
    if (value.kind != PickleKind::storage) continue;
    const auto key = pickle.at(value.items.at(0)).text;
    if (!storages.contains(key)) storages[key] = zip.bytes_of("data/" + std::string(key));
  }
  return torch_tensors(pickle, storages, file.size(), where);
}

// --- Before PyTorch 1.6: pickles one after the other, then the storages.

constexpr int64_t kProtocol = 1001;

// The first pickle is an integer of ten bytes.  Leaves `input` behind it.
void expect_magic(PickleInput& input, const std::string& where) {
  constexpr std::string_view kMagic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
  constexpr std::string_view kNoMagic = ": is a pickle, but none of torch.save";
  check(input.left() > 2 + kMagic.size(), where, kNoMagic);
  input.take(2);  // the protocol of the pickle
  if (input.peek() == '\x95') input.take(1 + sizeof(uint64_t));
  check(input.left() >= kMagic.size() && input.take(kMagic.size()) == kMagic, where, kNoMagic);
}

void check_system(const Pickle& system, const std::string& where) {
  const auto* is_little = system.root().kind == PickleKind::dict
                              ? system.find(system.root(), "little_endian")
                              : nullptr;
  check(is_little != nullptr && is_little->kind == PickleKind::boolean && is_little->integer == 1,
        where, ": must be little-endian");
}

// Bytes of an element of each storage that the pickle names.
std::map<std::string_view, uint64_t> element_sizes(const Pickle& pickle, const std::string& where) {
  std::map<std::string_view, uint64_t> sizes;
  for (size_t place = 0; place < pickle.size(); ++place) {
    const auto& value = pickle.at(place);
    if (value.kind != PickleKind::storage) continue;
    const auto key = pickle.at(value.items.at(0)).text;
    const auto size = torch_element_bytes(value.text);
    check(sizes.emplace(key, size).first->second == size, where, ": storage '", shown_text(key),
          "' has two types");
  }
  return sizes;
}

// The list of keys, then for each the number of elements and the elements.
TorchStorages take_storages(PickleInput& input, const Pickle& pickle, const std::string& where) {
  const auto sizes = element_sizes(pickle, where);
  const auto keys = take_pickle(input, torch_names());
  check(keys.root().kind == PickleKind::list, where, ": must have a list of storages");
  TorchStorages storages;
  for (const auto place : keys.root().items) {
    const auto& key = keys.at(place);
    const auto size = is_pickle_text(key) ? sizes.find(key.text) : sizes.end();
    check(size != sizes.end(), where, ": lists storage '", shown_text(key.text),
          "', which no tensor has");
    const auto count = input.number<int64_t>();
    uint64_t bytes = 0;
    const bool is_sane =
        count >= 0 && !__builtin_mul_overflow(static_cast<uint64_t>(count), size->second, &bytes);
    check(is_sane, where, ": storage '", shown_text(key.text), "' has a length of ", count);
    const bool is_new = storages.emplace(size->first, input.take(bytes)).second;
    check(is_new, where, ": lists storage '", shown_text(key.text), "' twice");
  }
  check(input.left() == 0, where, ": ", input.left(), " bytes follow the end");
  return storages;
}

StoredTensors parse_legacy(std::string_view file, const std::string& where) {
  PickleInput input(file, where);
  expect_magic(input, where);
  const auto protocol = take_pickle(input, torch_names());
  check(protocol.root().kind == PickleKind::integer && protocol.root().integer == kProtocol, where,
        ": must have protocol ", kProtocol, " of torch.save, has another one");
  check_system(take_pickle(input, torch_names()), where);
  const auto pickle = take_pickle(input, torch_names());
  const auto storages = take_storages(input, pickle, where);
  return torch_tensors(pickle, storages, file.size(), where);
}

}  // namespace

StoredTensors parse_torch_file(std::string file, const std::string& where) {
  const auto kept = std::make_shared<const std::string>(std::move(file));
  check(kept->starts_with("PK") || kept->starts_with('\x80'), where,
        ": is not a file of torch.save, begins with '", shown_text(kept->substr(0, 16)), "'");
  auto tensors = kept->starts_with("PK") ? parse_zip(*kept, where) : parse_legacy(*kept, where);
  tensors.file = kept;
  return tensors;
}

}  // namespace kelvin
