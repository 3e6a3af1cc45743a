#include "kelvin/formats/shown_text.h"

#include <algorithm>
#include <cstdint>

namespace kelvin {
namespace {

// How many bytes the character has that begins with this one; 0 if none does.
size_t character_bytes(uint8_t first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

// What the second byte must lie between, for a character that begins with `first`.
bool is_second(uint8_t first, uint8_t second) {
  const int least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const int most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  return second >= least && second <= most;
}

}  // namespace

std::string shown_text(std::string_view text) {
  constexpr size_t kMostShown = 80;
  std::string shown(text.substr(0, kMostShown));
  std::replace_if(
      shown.begin(), shown.end(), [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  if (text.size() > kMostShown) shown += "...";
  return shown;
}

bool is_utf8(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    const auto first = static_cast<uint8_t>(bytes[i]);
    const auto length = character_bytes(first);
    if (length == 0 || length > bytes.size() - i) return false;
    if (length > 1 && !is_second(first, static_cast<uint8_t>(bytes[i + 1]))) return false;
    for (size_t k = 2; k < length; ++k) {
      if ((static_cast<uint8_t>(bytes[i + k]) & 0xc0) != 0x80) return false;
    }
    i += length;
  }
  return true;
}

}  // namespace kelvin
