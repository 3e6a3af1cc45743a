#include "kelvin/formats/cifar_binary.h"

#include "kelvin/core/check.h"

namespace kelvin {

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

}  // namespace kelvin
