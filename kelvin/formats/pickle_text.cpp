#include "kelvin/formats/pickle_text.h"

#include <charconv>
#include <cstdint>

namespace kelvin {
namespace {

// The number that `digits` hexadecimal digits at `offset` are.
std::optional<uint32_t> hex_at(std::string_view text, size_t offset, size_t digits) {
  if (offset > text.size() || text.size() - offset < digits) return std::nullopt;
  const auto part = text.substr(offset, digits);
  uint32_t number = 0;
  const auto end = part.data() + part.size();
  const auto [stop, failure] = std::from_chars(part.data(), end, number, 16);
  if (failure != std::errc() || stop != end) return std::nullopt;
  return number;
}

// False if the number is no character.
bool append_utf8(std::string& text, uint32_t code) {
  const auto follow = [&](int shift) {
    text += static_cast<char>(0x80 | ((code >> shift) & 0x3f));
  };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | (code >> 6));
    follow(0);
  } else if (code < 0x10000) {
    if (code >= 0xd800 && code < 0xe000) return false;
    text += static_cast<char>(0xe0 | (code >> 12));
    follow(6);
    follow(0);
  } else {
    if (code > 0x10ffff) return false;
    text += static_cast<char>(0xf0 | (code >> 18));
    follow(12);
    follow(6);
    follow(0);
  }
  return true;
}

// The character after a backslash that stands for another one; nothing for others.
std::optional<char> simple_escape(char letter) {
  switch (letter) {
    case '\\':
    case '\'':
    case '"':
      return letter;
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> unquoted(std::string_view literal) {
  const bool is_quoted = literal.size() >= 2 && literal.front() == literal.back() &&
                         (literal.front() == '\'' || literal.front() == '"');
  if (!is_quoted) return std::nullopt;
  const auto inner = literal.substr(1, literal.size() - 2);
  std::string text;
  for (size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] != '\\') {
      text += inner[i];
      continue;
    }
    if (++i == inner.size()) return std::nullopt;
    if (inner[i] == 'x') {
      const auto code = hex_at(inner, i + 1, 2);
      if (!code) return std::nullopt;
      text += static_cast<char>(*code);
      i += 2;
    } else {
      const auto letter = simple_escape(inner[i]);
      if (!letter) return std::nullopt;
      text += *letter;
    }
  }
  return text;
}

std::optional<std::string> unescaped_unicode(std::string_view text) {
  std::string utf8;
  for (size_t i = 0; i < text.size(); ++i) {
    uint32_t code = static_cast<uint8_t>(text[i]);
    const char kind = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    if (kind == 'u' || kind == 'U') {
      const size_t digits = kind == 'u' ? 4 : 8;
      const auto escaped = hex_at(text, i + 2, digits);
      if (!escaped) return std::nullopt;
      code = *escaped;
      i += 1 + digits;
    }
    if (!append_utf8(utf8, code)) return std::nullopt;
  }
  return utf8;
}

std::optional<std::string> latin1_of(std::string_view utf8) {
  std::string bytes;
  bytes.reserve(utf8.size());
  for (size_t i = 0; i < utf8.size(); ++i) {
    const auto byte = static_cast<uint8_t>(utf8[i]);
    if (byte < 0x80) {
      bytes += utf8[i];
      continue;
    }
    // Characters of Latin-1 beyond ASCII have two bytes, of which the first is one of these.
    if (byte != 0xc2 && byte != 0xc3) return std::nullopt;
    if (++i == utf8.size() || (static_cast<uint8_t>(utf8[i]) & 0xc0) != 0x80) return std::nullopt;
    bytes += static_cast<char>(((byte & 0x03) << 6) | (static_cast<uint8_t>(utf8[i]) & 0x3f));
  }
  return bytes;
}

}  // namespace kelvin
