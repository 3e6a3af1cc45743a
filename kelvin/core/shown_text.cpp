#include "kelvin/core/shown_text.h"

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

// Bytes of the character of UTF-8 at the beginning of `text`; 0 if there is none.
size_t character_at(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  const auto length = character_bytes(first);
  if (length == 0 || length > text.size()) return 0;
  if (length > 1 && !is_second(first, static_cast<uint8_t>(text[1]))) return 0;
  for (size_t k = 2; k < length; ++k) {
    if ((static_cast<uint8_t>(text[k]) & 0xc0) != 0x80) return 0;
  }
  return length;
}

bool is_break(char letter) { return letter == '\n' || letter == '\r' || letter == '\t'; }

// Of a whole character: control characters, C1's too (terminals obey them), breaks of lines that
// have a code of their own, and what turns the direction of writing around.
bool steers_terminals(std::string_view character) {
  if (character.size() == 1) return character[0] < ' ' || character[0] == '\x7f';
  if (character.size() == 2) return character >= "\xc2\x80" && character <= "\xc2\x9f";
  return (character >= "\u200e" && character <= "\u200f") ||
         (character >= "\u2028" && character <= "\u202e") ||
         (character >= "\u2066" && character <= "\u2069");
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

std::string shown_line(std::string_view text, size_t most_bytes) {
  std::string shown;
  while (!text.empty()) {
    const auto length = character_at(text);
    const auto character = text.substr(0, std::max<size_t>(length, 1));
    if (shown.size() + character.size() > most_bytes) return shown + "...";
    if (is_break(character[0])) {
      shown += ' ';
    } else if (length == 0 || steers_terminals(character)) {
      shown += '?';
    } else {
      shown += character;
    }
    text.remove_prefix(character.size());
  }
  return shown;
}

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto length = character_at(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

}  // namespace kelvin
