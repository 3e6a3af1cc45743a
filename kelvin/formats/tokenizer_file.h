#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kelvin {

// What one token stands for, and how gladly it is put together from others.
struct TokenPiece {
  std::string text = {};
  float score = 0;
};

// The tokenizer.bin of llama2.c: the length of the longest piece, then of each its score, its
// length and its bytes, to the end of the file.  `where` names the file in messages.
std::vector<TokenPiece> parse_llama2c_tokenizer(std::string_view bytes, const std::string& where);

}  // namespace kelvin
