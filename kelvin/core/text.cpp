#include "kelvin/core/text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

// Levenshtein, row by row.
size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < to.size(); ++j) {
      const size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t start = 0;
  for (size_t end = text.find(separator); end != std::string_view::npos;
       end = text.find(separator, start)) {
    parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  parts.emplace_back(text.substr(start));
  return parts;
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  std::string nearest;
  constexpr size_t kMostBytes = 200;  // nobody's misspelt name is longer; comparing would take long
  if (name.size() > kMostBytes) return nearest;
  size_t smallest = (name.size() + 1) / 2;  // distances below it are less than half of the name
  for (const auto& candidate : candidates) {
    const size_t distance = edit_distance(name, candidate);
    if (distance >= smallest) continue;
    smallest = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const auto size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

std::string short_number(double value, int digits) {
  if (std::isfinite(value) && value == std::round(value) && std::abs(value) < 1e6) {
    return fmt::format("{}", static_cast<int64_t>(value));
  }
  return fmt::format("{:.{}g}", value, digits);
}

std::string short_duration(double seconds) {
  if (!(seconds < 1e15)) return "–";  // not known, or no time anybody waits for
  const auto whole = static_cast<int64_t>(std::llround(std::max(seconds, 0.0)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

bool comes_before(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  // Without leading zeros: the longer number is the larger one.
  const auto number_at = [&](std::string_view text, size_t at) {
    while (at + 1 < text.size() && text[at] == '0' && is_digit(text[at + 1])) ++at;
    const auto begin = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return std::pair(text.substr(begin, at - begin), at);
  };
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const auto [first, after_first] = number_at(a, i);
      const auto [second, after_second] = number_at(b, j);
      if (first.size() != second.size()) return first.size() < second.size();
      if (first != second) return first < second;
      i = after_first;
      j = after_second;
      continue;
    }
    if (a[i] != b[j]) return a[i] < b[j];
    ++i;
    ++j;
  }
  return i == a.size() && j < b.size();
}

namespace {

constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
constexpr double kStep = 1024;

}  // namespace

std::string byte_text(int64_t bytes) {
  auto amount = static_cast<double>(bytes);
  size_t unit = 0;
  while (amount >= kStep && unit + 1 < kUnits.size()) {
    amount /= kStep;
    ++unit;
  }
  return short_number(amount, 3) + " " + kUnits.at(unit);
}

int64_t bytes_of(const std::string& text, const std::string& where) {
  char* end = nullptr;
  double amount = std::strtod(text.c_str(), &end);
  while (std::isspace(static_cast<unsigned char>(*end)) != 0) ++end;
  const std::string unit = end;
  bool is_known = end != text.c_str() && (unit.empty() || unit == kUnits[0]);
  double factor = 1;
  for (size_t i = 1; i < kUnits.size() && !is_known; ++i) {
    factor *= kStep;
    const std::string name = kUnits.at(i);
    is_known = end != text.c_str() && (unit == name || unit == name.substr(0, 1));
  }
  amount *= factor;
  constexpr double kMost = 1e18;
  check(is_known && std::isfinite(amount) && amount >= 1 && amount <= kMost, where,
        ": must be an amount of memory such as 4GiB or 512MiB, got '", text, "'");
  return static_cast<int64_t>(amount);
}

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
