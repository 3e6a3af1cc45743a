#include "kelvin/core/seeds.h"

namespace kelvin {

uint64_t scramble(uint64_t bits) {
  bits += 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

uint64_t derive_seed(uint64_t root, std::string_view stream) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a of the name
  for (const char letter : stream) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  return scramble(scramble(root) ^ hash);
}

}  // namespace kelvin
