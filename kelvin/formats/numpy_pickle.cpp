#include "kelvin/formats/numpy_pickle.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "kelvin/core/check.h"
#include "kelvin/core/shown_text.h"
#include "kelvin/formats/pickle_text.h"

namespace kelvin {
namespace {

constexpr std::string_view kReconstruct = "numpy.core.multiarray._reconstruct";
constexpr std::string_view kNewReconstruct = "numpy._core.multiarray._reconstruct";
constexpr std::string_view kNdarray = "numpy.ndarray";
constexpr std::string_view kDtype = "numpy.dtype";
constexpr std::string_view kEncode = "_codecs.encode";
constexpr std::string_view kOldBytes = "__builtin__.bytes";
constexpr std::string_view kBytes = "builtins.bytes";
constexpr std::array<std::string_view, 7> kNames = {kReconstruct, kNewReconstruct, kNdarray, kDtype,
                                                    kEncode,      kOldBytes,       kBytes};
constexpr size_t kMostAxes = 32;  // NumPy's own limit

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
  check(shape.kind == PickleKind::tuple && shape.items.size() <= kMostAxes &&
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
    const auto* const found = std::find(kNames.begin(), kNames.end(), full);
    check(found != kNames.end(), where, ": refuses to build '", shown_text(full),
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

}  // namespace kelvin
