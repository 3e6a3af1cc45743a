#include "kelvin/formats/pickle_literals.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

PickleValue boolean(bool value) { return {.kind = PickleKind::boolean, .integer = value ? 1 : 0}; }

PickleValue integer(int64_t value) { return {.kind = PickleKind::integer, .integer = value}; }

PickleValue real(double value) { return {.kind = PickleKind::real, .real = value}; }

PickleValue bytes(std::string_view text) { return {.kind = PickleKind::bytes, .text = text}; }

PickleValue text(std::string_view utf8) { return {.kind = PickleKind::text, .text = utf8}; }

// One that does not fit 64 bits, such as the state of a generator of random numbers.
PickleValue huge_integer() { return {.kind = PickleKind::object, .text = "int"}; }

bool is_huge(std::string_view digits) {
  constexpr size_t kMostDigits = 18;  // of numbers that surely fit
  if (digits.starts_with('-')) digits.remove_prefix(1);
  return digits.size() > kMostDigits && std::all_of(digits.begin(), digits.end(), [](char letter) {
           return letter >= '0' && letter <= '9';
         });
}

// An integer as text.
PickleValue written_integer(std::string_view digits, const PickleInput& input) {
  int64_t value = 0;
  const auto* const end = digits.data() + digits.size();
  const bool fits = std::from_chars(digits.data(), end, value).ec == std::errc();
  return !fits && is_huge(digits) ? huge_integer() : integer(input.number_of<int64_t>(digits));
}

// Protocol 0 writes booleans as numbers of two digits.
PickleValue decimal(std::string_view digits, const PickleInput& input) {
  if (digits == "00" || digits == "01") return boolean(digits == "01");
  return written_integer(digits, input);
}

// Python 2 puts an L after long integers.
PickleValue long_line(std::string_view digits, const PickleInput& input) {
  if (digits.ends_with('L')) digits.remove_suffix(1);
  return written_integer(digits, input);
}

// Two's complement of any length.
PickleValue long_bytes(std::string_view digits) {
  if (digits.empty()) return integer(0);
  if (digits.size() > sizeof(int64_t)) return huge_integer();
  int64_t value = static_cast<uint8_t>(digits.back()) >= 0x80 ? -1 : 0;
  std::memcpy(&value, digits.data(), digits.size());
  return integer(value);
}

double big_endian_real(PickleInput& input) {
  return std::bit_cast<double>(__builtin_bswap64(input.number<uint64_t>()));
}

std::string_view kept(std::optional<std::string> decoded, const PickleInput& input,
                      Pickle& pickle) {
  check(decoded.has_value(), input.here(), ": text is malformed");
  return pickle.keep(std::move(*decoded));
}

std::optional<PickleValue> number_literal(uint8_t opcode, PickleInput& input) {
  switch (opcode) {
    case 'N':
      return PickleValue{};
    case 0x88:
      return boolean(true);
    case 0x89:
      return boolean(false);
    case 'I':
      return decimal(input.line(), input);
    case 'L':
      return long_line(input.line(), input);
    case 'J':
      return integer(input.number<int32_t>());
    case 'K':
      return integer(input.number<uint8_t>());
    case 'M':
      return integer(input.number<uint16_t>());
    case 0x8a:
      return long_bytes(input.counted<uint8_t>());
    case 0x8b:
      return long_bytes(input.counted<int32_t>());
    case 'F':
      return real(input.number_of<double>(input.line()));
    case 'G':
      return real(big_endian_real(input));
    default:
      return std::nullopt;
  }
}

std::optional<PickleValue> text_literal(uint8_t opcode, PickleInput& input, Pickle& pickle) {
  switch (opcode) {
    case 'S':
      return bytes(kept(unquoted(input.line()), input, pickle));
    case 'T':
      return bytes(input.counted<int32_t>());
    case 'U':  // str of Python 2
    case 'C':
      return bytes(input.counted<uint8_t>());
    case 'B':
      return bytes(input.counted<uint32_t>());
    case 0x8e:
    case 0x96:  // a bytearray
      return bytes(input.counted<uint64_t>());
    case 'V':
      return text(kept(unescaped_unicode(input.line()), input, pickle));
    case 0x8c:
      return text(input.counted<uint8_t>());
    case 'X':
      return text(input.counted<uint32_t>());
    case 0x8d:
      return text(input.counted<uint64_t>());
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<PickleValue> pickle_literal(uint8_t opcode, PickleInput& input, Pickle& pickle) {
  auto value = number_literal(opcode, input);
  return value ? std::move(value) : text_literal(opcode, input, pickle);
}

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
