#include "kelvin/formats/cifar_pickle.h"

#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/formats/pickle.h"

namespace kelvin {
namespace {

const PickleValue& value_of(const Pickle& pickle, const std::string& key, PickleKind kind,
                            const std::string& where) {
  const auto* value = pickle.find(pickle.root(), key);
  check(value != nullptr, where, ": has no '", key, "'");
  check(value->kind == kind, where, ": '", key, "' must be ",
        kind == PickleKind::array ? "an array of NumPy" : "a list");
  return *value;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const auto size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
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
