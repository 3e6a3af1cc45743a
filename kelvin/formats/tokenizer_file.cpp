#include "kelvin/formats/tokenizer_file.h"

#include <cmath>
#include <cstdint>

#include "kelvin/core/check.h"
#include "kelvin/formats/byte_reader.h"

namespace kelvin {

std::vector<TokenPiece> parse_llama2c_tokenizer(std::string_view bytes, const std::string& where) {
  const ByteReader reader(bytes, where);
  const auto longest = reader.number<int32_t>(0);
  check(longest >= 1, where, ": is no tokenizer of llama2.c: its longest piece has ", longest,
        " bytes");
  std::vector<TokenPiece> pieces;
  uint64_t at = sizeof(int32_t);
  while (at < reader.size()) {
    const auto score = reader.number<float>(at);
    const auto length = reader.number<int32_t>(at + sizeof(float));
    at += sizeof(float) + sizeof(int32_t);
    check(std::isfinite(score), where, ": the score of piece ", pieces.size(), " must be finite");
    check(length >= 0 && length <= longest, where, ": piece ", pieces.size(), " must have at most ",
          longest, " bytes, has ", length);
    pieces.push_back(
        {.text = std::string(reader.part(at, static_cast<uint64_t>(length))), .score = score});
    at += static_cast<uint64_t>(length);
  }
  check(!pieces.empty(), where, ": has no pieces");
  return pieces;
}

}  // namespace kelvin
