#include "kelvin/core/crc32c.h"

#include <array>

namespace kelvin {
namespace {

// What each value of a byte does to the checksum; the polynomial with its bits reversed.
constexpr std::array<uint32_t, 256> byte_effects() {
  constexpr uint32_t kPolynomial = 0x82F63B78;
  std::array<uint32_t, 256> effects{};
  for (uint32_t byte = 0; byte < effects.size(); ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit)
      rest = (rest & 1) != 0 ? (rest >> 1) ^ kPolynomial : rest >> 1;
    effects[byte] = rest;
  }
  return effects;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kEffects = byte_effects();
  uint32_t sum = 0xFFFFFFFF;
  for (const char byte : bytes) {
    sum = (sum >> 8) ^ kEffects[(sum ^ static_cast<unsigned char>(byte)) & 0xFF];
  }
  return ~sum;
}

}  // namespace kelvin
