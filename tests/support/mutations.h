#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kelvin/core/check.h"

namespace kelvin {

// Damages files as accidents and enemies do; the same seed always gives the same damage.
class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  // One to four kinds of damage, one after the other.
  std::string mutated(std::string bytes) {
    for (auto times = 1 + below(4); times > 0; --times) damage(bytes);
    return bytes;
  }

 private:
  // Uniform enough; std::uniform_int_distribution differs between libraries.
  size_t below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  void damage(std::string& bytes) {
    if (bytes.empty()) return extend(bytes);
    switch (below(8)) {
      case 0:
        return flip_a_bit(bytes);
      case 1:
        return overwrite_a_byte(bytes);
      case 2:
        return overwrite_a_length(bytes);
      case 3:
        return cut(bytes);
      case 4:
        return extend(bytes);
      case 5:
        return repeat_a_block(bytes);
      case 6:
        return remove_a_block(bytes);
      default:
        return replace_all_but_the_head(bytes);
    }
  }

  char any_byte() { return static_cast<char>(random_() & 0xff); }

  // Heads matter most and are short, so every second place is near the beginning.
  size_t place(const std::string& bytes) {
    const auto reach = below(2) == 0 ? std::min<size_t>(bytes.size(), 64) : bytes.size();
    return below(reach);
  }

  void flip_a_bit(std::string& bytes) {
    auto& byte = bytes.at(place(bytes));
    byte = static_cast<char>(byte ^ (1 << below(8)));
  }

  void overwrite_a_byte(std::string& bytes) { bytes.at(place(bytes)) = any_byte(); }

  // Numbers of one to eight bytes that break sums and products.
  void overwrite_a_length(std::string& bytes) {
    constexpr std::array<uint64_t, 8> kLengths = {0,          1,          0x7f,       0xff,
                                                  0x7fffffff, 0x80000000, 0xffffffff, ~uint64_t{0}};
    const auto length = kLengths.at(below(kLengths.size()));
    const bool is_big_endian = below(2) == 0;
    const auto width = size_t{1} << below(4);
    const auto start = place(bytes);
    for (size_t i = 0; i < width && start + i < bytes.size(); ++i) {
      const auto shift = 8 * (is_big_endian ? width - 1 - i : i);
      bytes.at(start + i) = static_cast<char>((length >> shift) & 0xff);
    }
  }

  void cut(std::string& bytes) { bytes.resize(below(bytes.size())); }

  void extend(std::string& bytes) {
    for (auto count = 1 + below(64); count > 0; --count) bytes.push_back(any_byte());
  }

  void repeat_a_block(std::string& bytes) {
    const auto start = place(bytes);
    const auto block = bytes.substr(start, 1 + below(64));
    bytes.insert(below(bytes.size() + 1), block);
  }

  void remove_a_block(std::string& bytes) { bytes.erase(place(bytes), 1 + below(64)); }

  void replace_all_but_the_head(std::string& bytes) {
    for (auto i = below(std::min<size_t>(bytes.size(), 64)); i < bytes.size(); ++i) {
      bytes.at(i) = any_byte();
    }
  }

  std::mt19937 random_;
};

// Damages text as those do who know what it means: numbers, and the order and number of its parts.
class TextMutator {
 public:
  explicit TextMutator(uint32_t seed) : random_(seed) {}

  // One to three kinds of damage, one after the other.
  std::string mutated(std::string text) {
    for (auto times = 1 + below(3); times > 0; --times) damage(text);
    return text;
  }

 private:
  size_t below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  void damage(std::string& text) {
    switch (below(4)) {
      case 0:
        return replace_a_number(text);
      case 1:
        return swap_parts(text);
      case 2:
        return repeat_a_part(text);
      default:
        return remove_a_part(text);
    }
  }

  // All places of the letters that `is_one` knows.
  template <class IsOne>
  std::vector<size_t> places(const std::string& text, const IsOne& is_one) {
    std::vector<size_t> found;
    for (size_t i = 0; i < text.size(); ++i) {
      if (is_one(text[i])) found.push_back(i);
    }
    return found;
  }

  static bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

  void replace_a_number(std::string& text) {
    constexpr std::array kNumbers = {"0",
                                     "1",
                                     "-1",
                                     "-0",
                                     "1.5",
                                     "1e3",
                                     "7",
                                     "9223372036854775807",
                                     "9223372036854775808",
                                     "18446744073709551615",
                                     "18446744073709551616",
                                     "4611686018427387904",
                                     "null",
                                     "true",
                                     "\"x\"",
                                     "[]",
                                     "{}",
                                     ""};
    const auto digits = places(text, is_digit);
    if (digits.empty()) return;
    auto begin = digits.at(below(digits.size()));
    auto end = begin;
    while (begin > 0 && is_digit(text[begin - 1])) --begin;
    while (end < text.size() && is_digit(text[end])) ++end;
    text.replace(begin, end - begin, kNumbers.at(below(kNumbers.size())));
  }

  // Where a part begins and ends, between two marks of punctuation.
  std::pair<size_t, size_t> part(const std::string& text) {
    const auto marks = places(text, [](char letter) {
      return std::string_view(",:{}[]\"").find(letter) != std::string_view::npos;
    });
    if (marks.size() < 2) return {0, 0};
    const auto first = below(marks.size() - 1);
    const auto last = std::min(marks.size() - 1, first + 1 + below(24));
    return {marks.at(first), marks.at(last)};
  }

  void swap_parts(std::string& text) {
    const auto [begin, end] = part(text);
    const auto moved = text.substr(begin, end - begin);
    text.erase(begin, end - begin);
    text.insert(part(text).first, moved);
  }

  void repeat_a_part(std::string& text) {
    const auto [begin, end] = part(text);
    text.insert(end, text.substr(begin, end - begin));
  }

  void remove_a_part(std::string& text) {
    const auto [begin, end] = part(text);
    text.erase(begin, end - begin);
  }

  std::mt19937 random_;
};

// How often each sample is damaged: KELVIN_FUZZ_ROUNDS if that is set, for longer runs by hand.
inline int fuzz_rounds(int usual) {
  const char* rounds = std::getenv("KELVIN_FUZZ_ROUNDS");
  return rounds == nullptr ? usual : std::max(1, std::atoi(rounds));
}

// A damaged file must give a value or an Error of one line.  A crash shows by itself.
inline void expect_value_or_error(const std::string& bytes, int round,
                                  const std::function<void(const std::string&)>& read) {
  try {
    read(bytes);
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << "round " << round << ": " << message;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "round " << round << ": not a kelvin::Error: " << error.what();
  }
}

// Hands damaged copies of `valid`, and files that are nothing of the kind, to `read`.
inline void expect_values_or_errors(const std::string& valid, int usual_rounds, uint32_t seed,
                                    const std::function<void(const std::string&)>& read) {
  ASSERT_NO_THROW(read(valid)) << "the sample must be valid, or its damage shows nothing";
  Mutator mutator(seed);
  expect_value_or_error("", -1, read);
  const auto rounds = fuzz_rounds(usual_rounds);
  for (int round = 0; round < rounds && !::testing::Test::HasFailure(); ++round) {
    expect_value_or_error(mutator.mutated(round % 16 == 0 ? "" : valid), round, read);
  }
}

// The same for a part of a file that is text.
inline void expect_values_or_errors_of_text(const std::string& valid, int usual_rounds,
                                            uint32_t seed,
                                            const std::function<void(const std::string&)>& read) {
  ASSERT_NO_THROW(read(valid)) << "the sample must be valid, or its damage shows nothing";
  TextMutator mutator(seed);
  const auto rounds = fuzz_rounds(usual_rounds);
  for (int round = 0; round < rounds && !::testing::Test::HasFailure(); ++round) {
    expect_value_or_error(mutator.mutated(valid), round, read);
  }
}

}  // namespace kelvin
