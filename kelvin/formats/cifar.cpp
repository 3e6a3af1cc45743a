#include "kelvin/formats/cifar.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/formats/pickle.h"
#include "kelvin/formats/pickle_literals.h"

namespace kelvin {
namespace {

constexpr std::string_view kReconstruct = "numpy.core.multiarray._reconstruct";
constexpr std::string_view kNewReconstruct = "numpy._core.multiarray._reconstruct";
constexpr std::string_view kNdarray = "numpy.ndarray";
constexpr std::string_view kDtype = "numpy.dtype";
constexpr std::string_view kEncode = "_codecs.encode";
constexpr std::string_view kOldBytes = "__builtin__.bytes";
constexpr std::string_view kBytes = "builtins.bytes";
constexpr std::array<std::string_view, 7> kNumpyNames = {
    kReconstruct, kNewReconstruct, kNdarray, kDtype, kEncode, kOldBytes, kBytes};
constexpr size_t kMostNumpyAxes = 32;  // NumPy's own limit

// Bytes of one element; 0 for what is no number.
int64_t element_bytes(std::string_view dtype) {
  for (const char* known :
       {"b1", "u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8"}) {
    if (dtype == known) return dtype[1] - '0';
  }
  return 0;
}

// `bytes` before Python 3 had opcodes for it: encode(text, "latin1").
PickleValue encoded(Pickle& pickle, const PickleValue& arguments, const std::string& where) {
  const bool is_known = arguments.items.size() == 2 &&
                        is_pickle_text(pickle.at(arguments.items[0])) &&
                        is_pickle_text(pickle.at(arguments.items[1])) &&
                        pickle.at(arguments.items[1]).text == "latin1";
  check(is_known, where, ": _codecs.encode must have a text and 'latin1' as arguments");
  auto bytes = latin1_of(pickle.at(arguments.items[0]).text);
  check(bytes.has_value(), where, ": text to be encoded must be of Latin-1, is not");
  return {.kind = PickleKind::bytes, .text = pickle.keep(std::move(*bytes))};
}

void fill_array(Pickle& pickle, size_t object, const PickleValue& state, const std::string& where) {
  check(state.items.size() == 5, where, ": state of an array must have 5 parts, has ",
        state.items.size());
  const auto& shape = pickle.at(state.items[1]);
  const auto& dtype = pickle.at(state.items[2]);
  const auto& is_fortran = pickle.at(state.items[3]);
  const auto& data = pickle.at(state.items[4]);
  check(shape.kind == PickleKind::tuple && shape.items.size() <= kMostNumpyAxes &&
            dtype.kind == PickleKind::dtype && is_pickle_text(data),
        where, ": state of an array must be version, shape, dtype, order and bytes");
  auto needed = element_bytes(dtype.text);
  check(needed > 0, where, ": array must be of numbers, its dtype is '", shown_text(dtype.text),
        "'");
  check(is_fortran.integer == 0, where, ": array must be in C order, is in Fortran order");
  for (const auto place : shape.items) {
    const auto& size = pickle.at(place);
    check(size.kind == PickleKind::integer && size.integer >= 0 &&
              !__builtin_mul_overflow(needed, size.integer, &needed),
          where, ": shape of an array is malformed or too large");
  }
  check(needed == static_cast<int64_t>(data.text.size()), where, ": shape of an array needs ",
        needed, " bytes, has ", data.text.size());
  const auto bytes = data.text;
  pickle.at(object) = {
      .kind = PickleKind::array, .text = bytes, .items = {state.items[1], state.items[2]}};
}

class NumpyNames final : public PickleNames {
 public:
  PickleValue known(Pickle& /*pickle*/, std::string_view module, std::string_view name,
                    const std::string& where) const override {
    const auto full = pickle_name(module, name);
    const auto* const found = std::find(kNumpyNames.begin(), kNumpyNames.end(), full);
    check(found != kNumpyNames.end(), where, ": refuses to build '", shown_text(full),
          "': only arrays of NumPy are known");
    return {.kind = PickleKind::name, .text = *found};
  }

  PickleValue reduced(Pickle& pickle, const PickleValue& name, const PickleValue& arguments,
                      const std::string& where) const override {
    const auto& items = arguments.items;
    const PickleValue* first = items.empty() ? nullptr : &pickle.at(items.front());
    if (name.text == kReconstruct || name.text == kNewReconstruct) {
      const bool is_array =
          first != nullptr && first->kind == PickleKind::name && first->text == kNdarray;
      check(is_array, where, ": _reconstruct must have numpy.ndarray as its first argument");
      return {.kind = PickleKind::blank_array};
    }
    if (name.text == kDtype) {
      check(first != nullptr && is_pickle_text(*first), where, ": numpy.dtype must have a name");
      return {.kind = PickleKind::dtype, .text = first->text};
    }
    if (name.text == kEncode) return encoded(pickle, arguments, where);
    check((name.text == kBytes || name.text == kOldBytes) && items.empty(), where, ": ", name.text,
          " must not be called with ", items.size(), " arguments");
    return {.kind = PickleKind::bytes};
  }

  void build(Pickle& pickle, size_t object, const PickleValue& state,
             const std::string& where) const override {
    const auto& target = pickle.at(object);
    check(state.kind == PickleKind::tuple, where, ": BUILD must have a tuple as state");
    if (target.kind == PickleKind::blank_array || target.kind == PickleKind::array) {
      fill_array(pickle, object, state, where);
      return;
    }
    // The state of a dtype says its byte order and what records are made of: of no use for bytes.
    check(target.kind == PickleKind::dtype, where, ": BUILD must have an array or a dtype");
  }
};

}  // namespace

const PickleNames& numpy_names() {
  static const NumpyNames names;
  return names;
}

RawImages parse_cifar_binary(std::string_view bytes, const std::string& where,
                             const CifarRecord& record) {
  check(record.label_index >= 0 && record.label_index < record.label_bytes, where, ": label ",
        record.label_index, " must be one of the ", record.label_bytes, " of a record");
  RawImages images{.channels = 3, .height = 32, .width = 32};
  const auto label_bytes = static_cast<size_t>(record.label_bytes);
  const auto image_bytes = static_cast<size_t>(images.image_bytes());
  const auto record_bytes = label_bytes + image_bytes;
  check(!bytes.empty(), where, ": is empty, must hold records of ", record_bytes, " bytes");
  const auto count = bytes.size() / record_bytes;
  check(count * record_bytes == bytes.size(), where, ": byte ", count * record_bytes,
        ": cut off: records have ", record_bytes, " bytes, the last one has ",
        bytes.size() - count * record_bytes);

  images.pixels.reserve(count * image_bytes);
  images.labels.reserve(count);
  for (size_t start = 0; start < bytes.size(); start += record_bytes) {
    const auto label_at = start + static_cast<size_t>(record.label_index);
    const int64_t label = static_cast<uint8_t>(bytes.at(label_at));
    check(label < record.classes, where, ": byte ", label_at, ": label must be below ",
          record.classes, ", is ", label);
    images.labels.push_back(label);
    // As bytes of the same type they are copied at once, not one by one.
    const auto* pixels = reinterpret_cast<const uint8_t*>(bytes.data() + start + label_bytes);
    images.pixels.insert(images.pixels.end(), pixels, pixels + image_bytes);
  }
  return images;
}

namespace {

const PickleValue& value_of(const Pickle& pickle, const std::string& key, PickleKind kind,
                            const std::string& where) {
  const auto* value = pickle.find(pickle.root(), key);
  check(value != nullptr, where, ": has no '", key, "'");
  check(value->kind == kind, where, ": '", key, "' must be ",
        kind == PickleKind::array ? "an array of NumPy" : "a list");
  return *value;
}

std::vector<int64_t> labels_of(const Pickle& pickle, const std::string& key, int64_t classes,
                               const std::string& where) {
  std::vector<int64_t> labels;
  const auto& list = value_of(pickle, key, PickleKind::list, where);
  labels.reserve(list.items.size());
  for (const auto place : list.items) {
    const auto& label = pickle.at(place);
    check(label.kind == PickleKind::integer, where, ": '", key, "' ", labels.size(),
          ": label must be an integer");
    check(label.integer >= 0 && label.integer < classes, where, ": '", key, "' ", labels.size(),
          ": label must be below ", classes, ", is ", label.integer);
    labels.push_back(label.integer);
  }
  return labels;
}

}  // namespace

RawImages parse_cifar_pickle(std::string_view bytes, const std::string& where,
                             const std::string& label_key, int64_t classes) {
  const auto pickle = parse_pickle(bytes, where);
  check(pickle.root().kind == PickleKind::dict, where, ": must hold a dict");
  RawImages images{.channels = 3, .height = 32, .width = 32};
  const auto data = pickle.array(value_of(pickle, "data", PickleKind::array, where));
  const bool fits = data.dtype == "u1" && data.shape.size() == 2 && data.shape[0] > 0 &&
                    data.shape[1] == images.image_bytes();
  check(fits, where, ": 'data' must be bytes of shape [n, ", images.image_bytes(), "], is ",
        data.dtype, " of shape ", shape_text(data.shape));
  images.labels = labels_of(pickle, label_key, classes, where);
  check(images.size() == data.shape[0], where, ": '", label_key, "' must have as many labels as ",
        "there are images, ", data.shape[0], ", has ", images.size());
  const auto* pixels = reinterpret_cast<const uint8_t*>(data.bytes.data());
  images.pixels.assign(pixels, pixels + data.bytes.size());
  return images;
}

}  // namespace kelvin
