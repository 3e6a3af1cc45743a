#include "kelvin/formats/torch_tensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/formats/stored_tensors.h"

namespace kelvin {
namespace {

// Copies the elements of one row, `stride` apart.
void copy_row(const StridedView& view, int64_t from, char* to) {
  const auto step = static_cast<uint64_t>(view.strides.back()) * view.element_bytes;
  const auto* source = view.storage.data() + static_cast<uint64_t>(from) * view.element_bytes;
  for (int64_t i = 0; i < view.shape.back(); ++i) {
    std::memcpy(to, source, view.element_bytes);
    to += view.element_bytes;
    if (i + 1 < view.shape.back()) source += step;  // not past the storage
  }
}

// Steps `index` to the next row, and `from` along; false after the last one.
bool next_row(const StridedView& view, std::vector<int64_t>& index, int64_t& from) {
  for (size_t axis = index.size() - 1; axis-- > 0;) {
    if (++index[axis] < view.shape[axis]) {
      from += view.strides[axis];
      return true;
    }
    from -= (view.shape[axis] - 1) * view.strides[axis];
    index[axis] = 0;
  }
  return false;
}

}  // namespace

int64_t StridedView::size() const {
  int64_t count = 1;
  for (const auto length : shape) count *= length;
  return count;
}

bool StridedView::is_contiguous() const {
  int64_t expected = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] != 1 && strides[axis] != expected) return size() == 0;
    expected *= std::max<int64_t>(shape[axis], 1);
  }
  return true;
}

void check_inside(const StridedView& view, const std::string& where) {
  check(view.strides.size() == view.shape.size(), where, ": must have as many strides as sizes, ",
        view.shape.size(), ", has ", view.strides.size());
  const bool is_negative =
      view.offset < 0 || std::any_of(view.strides.begin(), view.strides.end(),
                                     [](int64_t stride) { return stride < 0; });
  check(!is_negative, where, ": offset and strides must not be negative");
  if (view.size() == 0) return;
  const auto elements = view.storage.size() / view.element_bytes;
  int64_t last = view.offset;
  bool overflows = false;
  for (size_t axis = 0; axis < view.shape.size(); ++axis) {
    int64_t reach = 0;
    overflows = overflows ||
                __builtin_mul_overflow(view.shape[axis] - 1, view.strides[axis], &reach) ||
                __builtin_add_overflow(last, reach, &last);
  }
  check(!overflows && static_cast<uint64_t>(last) < elements, where,
        ": lies outside of its storage, which has ", elements, " elements");
}

std::string_view contiguous_bytes(const StridedView& view) {
  if (view.size() == 0) return {};  // its offset may be any
  return view.storage.substr(static_cast<uint64_t>(view.offset) * view.element_bytes,
                             static_cast<uint64_t>(view.size()) * view.element_bytes);
}

std::string copied_rows(const StridedView& view) {
  if (view.is_contiguous()) return std::string(contiguous_bytes(view));
  std::string bytes(static_cast<uint64_t>(view.size()) * view.element_bytes, '\0');
  const auto row_bytes = static_cast<uint64_t>(view.shape.back()) * view.element_bytes;
  std::vector<int64_t> index(view.shape.size(), 0);
  auto from = view.offset;
  auto* to = bytes.data();
  do {
    copy_row(view, from, to);
    to += row_bytes;
  } while (next_row(view, index, from));
  return bytes;
}

namespace {

constexpr std::string_view kNotBuilt =
    "', which is not built: only dicts of tensors are read; of a model, save model.state_dict()";
constexpr int kMostDepth = 32;
constexpr size_t kMostName = 1024;
constexpr uint64_t kMostTimesTheFile = 4;
constexpr uint64_t kAlwaysAllowed = 65536;  // bytes; small files are mostly overhead
constexpr uint64_t kValueBytes = 128;       // about what a tensor or a dict costs beside its bytes

// Whether a key can be part of a name.
bool is_key(const PickleValue& key) {
  return is_pickle_text(key) || key.kind == PickleKind::integer;
}

std::string key_text(const PickleValue& key) {
  if (key.kind == PickleKind::integer) return std::to_string(key.integer);
  return std::string(key.text.substr(0, kMostName + 1));  // enough to see that it is too long
}

// Nothing for what is no scalar.
std::optional<std::string> scalar_text(const PickleValue& value) {
  if (is_pickle_text(value)) return shown_text(value.text);
  if (value.kind == PickleKind::integer) return std::to_string(value.integer);
  if (value.kind == PickleKind::real) return short_number(value.real, 8);
  if (value.kind == PickleKind::boolean) return value.integer != 0 ? "true" : "false";
  return std::nullopt;
}

std::vector<int64_t> integers_of(const Pickle& pickle, const PickleValue& tuple) {
  std::vector<int64_t> integers;
  integers.reserve(tuple.items.size());
  for (const auto place : tuple.items) integers.push_back(pickle.at(place).integer);
  return integers;
}

// Goes through a dict and the dicts in it.
class DictWalk {
 public:
  DictWalk(const Pickle& pickle, const TorchStorages& storages, uint64_t file_bytes,
           const std::string& where)
      : pickle_(pickle),
        storages_(storages),
        where_(where),
        budget_(kMostTimesTheFile * file_bytes + kAlwaysAllowed) {}

  StoredTensors run() {
    const auto& root = pickle_.root();
    check(root.kind != PickleKind::object, where_, ": is an object of '", root.text, kNotBuilt);
    check(root.kind == PickleKind::dict, where_, ": must hold a dict of tensors");
    visit(root, "", 0);
    check_for_networks();
    result_.copies = std::make_shared<const std::deque<std::string>>(std::move(copies_));
    std::vector<std::string_view> names;
    names.reserve(result_.tensors.size());
    for (const auto& tensor : result_.tensors) names.emplace_back(tensor.name);
    check_names_differ(std::move(names), where_);
    return std::move(result_);
  }

 private:
  // A few bytes can refer to the same dict or element again and again.
  void spend(uint64_t bytes) {
    check(bytes <= budget_, where_, ": its tensors would take more than ", kMostTimesTheFile,
          " times the memory of the file");
    budget_ -= bytes;
  }

  void visit(const PickleValue& dict, const std::string& prefix, int depth) {
    check(depth < kMostDepth, where_, ": dicts must be nested at most ", kMostDepth, " deep");
    spend(dict.items.size());
    for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      const auto& key = pickle_.at(dict.items[i]);
      const auto& value = pickle_.at(dict.items[i + 1]);
      if (!is_key(key)) continue;  // no part of a name
      if (value.kind == PickleKind::tensor || value.kind == PickleKind::dict) {
        const auto name = name_of(prefix, key);
        spend(name.size() + kValueBytes);
        if (value.kind == PickleKind::dict) visit(value, name + ".", depth + 1);
        if (value.kind == PickleKind::tensor) add_tensor(name, value);
      } else if (depth == 0 && value.kind == PickleKind::object) {
        objects_.emplace_back(key_text(key), value.text);
      } else if (depth == 0) {
        add_metadata(key, value);
      }
    }
  }

  // Somebody saved {'model': model}, and no weights beside it.
  void check_for_networks() const {
    constexpr std::array<std::string_view, 5> kPlaces = {"state_dict", "model_state_dict", "model",
                                                         "net", "network"};
    const auto is_place = [&](std::string_view name) {
      return std::find(kPlaces.begin(), kPlaces.end(), name) != kPlaces.end();
    };
    for (const auto& tensor : result_.tensors) {
      if (is_place(std::string_view(tensor.name).substr(0, tensor.name.find('.')))) return;
    }
    for (const auto& [key, type] : objects_) {
      check(!is_place(key) && !result_.tensors.empty(), where_, ": '", shown_text(key),
            "' is an object of '", type, kNotBuilt);
    }
  }

  std::string name_of(const std::string& prefix, const PickleValue& key) const {
    auto name = prefix + key_text(key);
    check(name.size() <= kMostName, where_, ": names must have at most ", kMostName, " bytes, '",
          shown_text(name), "' has more");
    check(is_utf8(name), where_, ": names must be in UTF-8, '", shown_text(name), "' is not");
    return name;
  }

  void add_metadata(const PickleValue& key, const PickleValue& value) {
    auto text = scalar_text(value);
    if (!text) return;
    spend(kValueBytes);
    result_.metadata[shown_text(key_text(key))] = std::move(*text);
  }

  void add_tensor(const std::string& name, const PickleValue& value) {
    const auto where = where_ + ": '" + shown_text(name) + "'";
    const auto& storage = pickle_.at(value.items.at(0));
    const StridedView view{.storage = storage_bytes(storage, where),
                           .element_bytes = stored_element_bytes(storage.text),
                           .offset = pickle_.at(value.items.at(1)).integer,
                           .shape = integers_of(pickle_, pickle_.at(value.items.at(2))),
                           .strides = integers_of(pickle_, pickle_.at(value.items.at(3)))};
    const auto bytes = stored_tensor_bytes(storage.text, view.shape, where);
    check_inside(view, where);
    spend(sizeof(int64_t) * view.shape.size());
    StoredTensor tensor{.name = name, .dtype = std::string(storage.text), .shape = view.shape};
    if (view.is_contiguous()) {
      if (tensor.dtype == "BOOL") spend(bytes);  // each of which is looked at
      tensor.bytes = contiguous_bytes(view);
    } else {
      spend(bytes);
      tensor.bytes = copies_.emplace_back(copied_rows(view));
    }
    check_stored_tensor(tensor, where);
    result_.tensors.push_back(std::move(tensor));
  }

  // The elements that the storage has by its count, which may be fewer than lie under its key.
  std::string_view storage_bytes(const PickleValue& storage, const std::string& where) const {
    const auto key = pickle_.at(storage.items.at(0)).text;
    const auto count = static_cast<uint64_t>(pickle_.at(storage.items.at(1)).integer);
    const auto element = stored_element_bytes(storage.text);
    const auto found = storages_.find(key);
    check(found != storages_.end(), where, ": has no storage '", shown_text(key), "'");
    check(count <= found->second.size() / element, where, ": storage '", shown_text(key),
          "' must have ", count, " elements of ", element, " bytes, has ", found->second.size(),
          " bytes");
    return found->second.substr(0, count * element);
  }

  const Pickle& pickle_;
  const TorchStorages& storages_;
  const std::string& where_;
  uint64_t budget_;
  StoredTensors result_;
  std::deque<std::string> copies_;
  std::vector<std::pair<std::string, std::string_view>> objects_;  // key and class, outermost ones
};

}  // namespace

StoredTensors torch_tensors(const Pickle& pickle, const TorchStorages& storages,
                            uint64_t file_bytes, const std::string& where) {
  return DictWalk(pickle, storages, file_bytes, where).run();
}

}  // namespace kelvin
