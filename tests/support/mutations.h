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

// How often each sample is damaged: KELVIN_FUZZ_ROUNDS if that is set, for longer runs by hand.
inline int fuzz_rounds(int usual) {
  const char* rounds = std::getenv("KELVIN_FUZZ_ROUNDS");
  return rounds == nullptr ? usual : std::max(1, std::atoi(rounds));
}

// Hands damaged copies of `valid`, and files that are nothing of the kind, to `read`: each must
// give a value or an Error.  A crash shows by itself.
inline void expect_values_or_errors(const std::string& valid, int usual_rounds, uint32_t seed,
                                    const std::function<void(const std::string&)>& read) {
  ASSERT_NO_THROW(read(valid)) << "the sample must be valid, or its damage shows nothing";
  Mutator mutator(seed);
  const auto try_it = [&](const std::string& bytes, int round) {
    try {
      read(bytes);
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_EQ(message.find('\n'), std::string::npos) << "round " << round << ": " << message;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "round " << round << ": not a kelvin::Error: " << error.what();
    }
  };
  try_it("", -1);
  const auto rounds = fuzz_rounds(usual_rounds);
  for (int round = 0; round < rounds && !::testing::Test::HasFailure(); ++round) {
    try_it(mutator.mutated(round % 16 == 0 ? "" : valid), round);
  }
}

}  // namespace kelvin
