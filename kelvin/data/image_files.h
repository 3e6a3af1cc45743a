#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kelvin/data/canvas.h"
#include "kelvin/formats/image_folder.h"

namespace kelvin {

struct ImageFileOptions {
  int64_t size = 224;           // of the square that a picture becomes
  double crop_share = 0.875;    // the centre crop's fraction of the shorter side: 224 of 256
  bool exact_decoding = false;  // decode every pixel of a JPEG, also where a smaller one would do
};

// Pictures on disk, decoded whenever they are asked for; nothing is kept.
class ImageFiles {
 public:
  ImageFiles(LabelledFiles files, const ImageFileOptions& options);

  int64_t size() const { return files_.size(); }
  int64_t side() const { return options_.size; }
  const LabelledFiles& files() const { return files_; }
  const ImageFileOptions& options() const { return options_; }

  // Shorter side resized to side / crop_share, then the middle: torchvision's Resize and
  // CenterCrop. Writes [side, side, 3].
  void decode_middle(int64_t index, std::span<uint8_t> rgb) const;

  // A random part, resized: torchvision's RandomResizedCrop.  Writes [side, side, 3].
  void decode_random(int64_t index, HashStream& stream, std::span<uint8_t> rgb) const;

 private:
  LabelledFiles files_;
  ImageFileOptions options_;
};

}  // namespace kelvin
