#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kelvin/formats/tokenizer_file.h"

namespace kelvin {

// Text to tokens and back, as llama2.c and SentencePiece do it: a space before the text, then
// letters, or bytes of those that are no piece; of two neighbours that together are a piece those
// of the highest score become one, the first of equals, until there are none.
class Tokenizer {
 public:
  static constexpr int64_t kBegin = 1;  // opens every text
  static constexpr int64_t kEnd = 2;

  // An Error that `where` opens if there are too few pieces for one of each byte.
  Tokenizer(std::vector<TokenPiece> pieces, const std::string& where);

  int64_t size() const { return static_cast<int64_t>(pieces_.size()); }

  size_t longest_piece() const { return longest_piece_; }  // in bytes

  // Of UTF-8; without kBegin.  The time is that of sorting as many pairs as there are letters.
  std::vector<int64_t> encode(std::string_view text) const;

  // Of tokens that `encode` might have given: without the space before the text.
  std::string decode(const std::vector<int64_t>& tokens) const;

 private:
  std::string bytes_of(int64_t token) const;

  std::vector<TokenPiece> pieces_;
  std::unordered_map<std::string, int64_t> tokens_;  // by their text
  size_t longest_piece_ = 0;
};

}  // namespace kelvin
