#include "kelvin/formats/crc32c.h"

#include <array>
#include <cstring>
#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace kelvin {
namespace {

// What each value of a byte does to the checksum, with 0 to 7 bytes of zeros behind it; the
// polynomial with its bits reversed.
using Effects = std::array<std::array<uint32_t, 256>, 8>;

constexpr Effects byte_effects() {
  constexpr uint32_t kPolynomial = 0x82F63B78;
  Effects effects{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit)
      rest = (rest & 1) != 0 ? (rest >> 1) ^ kPolynomial : rest >> 1;
    effects[0][byte] = rest;
  }
  for (size_t zeros = 1; zeros < effects.size(); ++zeros) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const auto rest = effects[zeros - 1][byte];
      effects[zeros][byte] = (rest >> 8) ^ effects[0][rest & 0xFF];
    }
  }
  return effects;
}

uint64_t eight_bytes(const char* bytes) {
  uint64_t number = 0;
  std::memcpy(&number, bytes, sizeof(number));
  return number;
}

// Eight bytes at a time, by tables.
uint32_t by_tables(std::string_view bytes, uint32_t sum) {
  static constexpr auto kEffects = byte_effects();
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    const auto number = eight_bytes(bytes.data()) ^ sum;
    sum = 0;
    for (size_t i = 0; i < 8; ++i) sum ^= kEffects[7 - i][(number >> (8 * i)) & 0xFF];
  }
  for (const char byte : bytes) {
    sum = (sum >> 8) ^ kEffects[0][(sum ^ static_cast<unsigned char>(byte)) & 0xFF];
  }
  return sum;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t by_instruction(std::string_view bytes, uint32_t sum) {
  uint64_t wide = sum;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    wide = _mm_crc32_u64(wide, eight_bytes(bytes.data()));
  }
  sum = static_cast<uint32_t>(wide);
  for (const char byte : bytes) sum = _mm_crc32_u8(sum, static_cast<unsigned char>(byte));
  return sum;
}
#endif

}  // namespace

uint32_t crc32c(std::string_view bytes, uint32_t before) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~by_instruction(bytes, ~before);
#endif
  return crc32c_by_tables(bytes, before);
}

uint32_t crc32c_by_tables(std::string_view bytes, uint32_t before) {
  return ~by_tables(bytes, ~before);
}

}  // namespace kelvin
