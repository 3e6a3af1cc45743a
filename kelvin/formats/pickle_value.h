#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kelvin {

// After `dict`: what names and NumPy's arrays are made of, where a `blank_array` still waits for
// its elements, and PyTorch's tensors; last an `object`, which only running the pickle could build
// and of which nothing but its class is known.
enum class PickleKind {
  none,
  boolean,
  integer,
  real,
  bytes,
  text,
  list,
  tuple,
  dict,
  array,
  blank_array,
  dtype,
  name,
  storage,
  tensor,
  object
};

// A Python value.  Others are told by their place in the Pickle, so that values that are shared, or
// contain themselves, cost nothing and end no reader.
struct PickleValue {
  PickleKind kind = PickleKind::none;
  int64_t integer = 0;  // boolean, integer
  double real = 0;
  // bytes; text in UTF-8; an array's elements; "u1" of a dtype; "module.name" of a name and of an
  // object's class or function; "F32" of a storage.
  std::string_view text = {};
  // list and tuple; of a dict keys and values in turn; of an array its shape and dtype; of a
  // storage its key and count of elements; of a tensor its storage, offset, shape and strides.
  std::vector<size_t> items = {};
};

// Whether a value is text; that of Python 2 is bytes.
inline bool is_pickle_text(const PickleValue& value) {
  return value.kind == PickleKind::text || value.kind == PickleKind::bytes;
}

// An array of NumPy in C order.
struct PickleArray {
  std::string_view dtype = {};  // without byte order: "u1"
  std::vector<int64_t> shape = {};
  std::string_view bytes = {};
};

// All values of a pickle.  Their text lies in the file's bytes, which must outlive it, or here.
class Pickle {
 public:
  Pickle() = default;
  Pickle(Pickle&&) = default;
  Pickle& operator=(Pickle&&) = default;
  Pickle(const Pickle&) = delete;  // the texts of a copy would be those of the original
  Pickle& operator=(const Pickle&) = delete;
  ~Pickle() = default;

  const PickleValue& root() const { return values_.at(root_); }
  size_t size() const { return values_.size(); }
  const PickleValue& at(size_t place) const { return values_.at(place); }
  PickleValue& at(size_t place) { return values_.at(place); }

  // The value of a key that is text or bytes; null if the dict has none.
  const PickleValue* find(const PickleValue& dict, std::string_view key) const {
    const PickleValue* found = nullptr;
    for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      const auto& candidate = at(dict.items.at(i));
      if (is_pickle_text(candidate) && candidate.text == key) found = &at(dict.items.at(i + 1));
    }
    return found;  // the last one, as in Python
  }

  // Of a value that is an array.
  PickleArray array(const PickleValue& value) const {
    PickleArray array{.dtype = at(value.items.at(1)).text, .bytes = value.text};
    for (const auto size : at(value.items.at(0)).items) array.shape.push_back(at(size).integer);
    return array;
  }

  size_t add(PickleValue value) {
    values_.push_back(std::move(value));
    return values_.size() - 1;
  }

  // Text that is not in the file as it stands.
  std::string_view keep(std::string text) {
    kept_bytes_ += text.size();
    return kept_.emplace_back(std::move(text));
  }

  size_t kept_bytes() const { return kept_bytes_; }
  void set_root(size_t place) { root_ = place; }

 private:
  std::vector<PickleValue> values_;
  std::deque<std::string> kept_;
  size_t kept_bytes_ = 0;
  size_t root_ = 0;
};

// The functions and classes that a pickle of some kind may name.  Here a name is an inert mark, and
// a "call" of it makes a value by code of ours.  Of anything else nothing is built, because to
// build it would be to run it: the pickle is refused, or the value is an `object` that holds
// nothing. `where` is file and offset.
class PickleNames {
 public:
  PickleNames() = default;
  PickleNames(const PickleNames&) = delete;
  PickleNames& operator=(const PickleNames&) = delete;
  virtual ~PickleNames() = default;

  // A mark for `module.name`; an Error that shows the name, or an object, if it is not known.
  virtual PickleValue known(Pickle& pickle, std::string_view module, std::string_view name,
                            const std::string& where) const = 0;

  // What the opcode REDUCE makes of a mark and a tuple of arguments.
  virtual PickleValue reduced(Pickle& pickle, const PickleValue& name, const PickleValue& arguments,
                              const std::string& where) const = 0;

  // What the opcode BUILD does to a value that was made, given its state.
  virtual void build(Pickle& pickle, size_t object, const PickleValue& state,
                     const std::string& where) const = 0;

  // What a persistent id, something beside the pickle, stands for; nothing where there are none.
  virtual std::optional<PickleValue> persistent(const Pickle& /*pickle*/, const PickleValue& /*id*/,
                                                const std::string& /*where*/) const {
    return std::nullopt;
  }
};

// "module.name", of which a stranger may have written megabytes, short enough to be looked up.
inline std::string pickle_name(std::string_view module, std::string_view name) {
  constexpr size_t kMostName = 1000;
  return std::string(module.substr(0, kMostName)) + "." + std::string(name.substr(0, kMostName));
}

}  // namespace kelvin
