#include "kelvin/formats/torch_pickle.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/shown_text.h"
#include "kelvin/formats/stored_tensor_checks.h"

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
constexpr std::array kNames = {
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
    const auto* const found = std::find(kNames.begin(), kNames.end(), full);
    if (found != kNames.end()) return {.kind = PickleKind::name, .text = *found};
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

}  // namespace kelvin
