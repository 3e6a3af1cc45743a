#pragma once

#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "kelvin/core/check.h"
#include "kelvin/formats/pickle_value.h"

namespace kelvin {

static_assert(std::endian::native == std::endian::little, "numbers of pickles are little-endian");

// The bytes of a pickle from its first to its last, every read checked.
class PickleInput {
 public:
  PickleInput(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  uint8_t opcode() {
    opcode_at_ = at_;
    return number<uint8_t>();
  }

  // File and offset of the opcode at hand, for messages.
  std::string here() const { return where_ + ": byte " + std::to_string(opcode_at_); }

  size_t size() const { return bytes_.size(); }
  size_t left() const { return bytes_.size() - at_; }

  // An Error if fewer bytes are left.
  void expect(uint64_t length) const {
    check(length <= left(), Here{this}, ": cut off: needs ", length, " bytes, has ", left());
  }

  // The next byte, which stays where it is.
  char peek() const {
    expect(1);
    return bytes_[at_];
  }

  std::string_view take(uint64_t length) {
    expect(length);
    const auto part = bytes_.substr(at_, length);
    at_ += length;
    return part;
  }

  template <class Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof(Number)).data(), sizeof(Number));
    return value;
  }

  // Bytes after their number.
  template <class Length>
  std::string_view counted() {
    const auto length = number<Length>();
    check(length >= 0, Here{this}, ": length must not be negative, is ", length);
    return take(static_cast<uint64_t>(length));
  }

  std::string_view line() {
    const auto end = bytes_.find('\n', at_);
    check(end != std::string_view::npos, Here{this}, ": cut off: its line does not end");
    const auto text = take(end - at_);
    take(1);
    return text;
  }

  // The number that a text is, all of it.
  template <class Number>
  Number number_of(std::string_view text) const {
    Number value{};
    const auto* end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(text.data(), end, value);
    check(failure == std::errc() && stop == end, Here{this},
          ": must be a number that fits 64 bits");
    return value;
  }

 private:
  // Makes the text of here() only when a message is made.
  struct Here {
    const PickleInput* input;
    friend std::ostream& operator<<(std::ostream& stream, const Here& place) {
      return stream << place.input->here();
    }
  };

  std::string_view bytes_;
  const std::string& where_;
  size_t at_ = 0;
  size_t opcode_at_ = 0;
};

// The value of an opcode that brings one: none, booleans, numbers, bytes and text.  Nothing for
// other opcodes.
std::optional<PickleValue> pickle_literal(uint8_t opcode, PickleInput& input, Pickle& pickle);

// How protocol 0 of Python's pickles writes strings into lines.  Nothing if the text is malformed.

// A Python literal in quotes: what STRING holds.
std::optional<std::string> unquoted(std::string_view literal);

// Python's raw-unicode-escape, given as UTF-8: what UNICODE holds.
std::optional<std::string> unescaped_unicode(std::string_view text);

// Python's text.encode("latin1") of UTF-8: how bytes were written before there was an opcode.
std::optional<std::string> latin1_of(std::string_view utf8);

}  // namespace kelvin
