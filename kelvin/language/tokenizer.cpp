#include "kelvin/language/tokenizer.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"

namespace kelvin {
namespace {

// Tokens of single bytes stand behind those of nothing known, of the begin and of the end.
constexpr int64_t kFirstByte = 3;
constexpr size_t kBytes = 256;

constexpr int64_t kNone = -1;

// Tokens side by side; those that were put together are left out of the list.
struct Link {
  int64_t token = 0;  // kNone: it has become part of the one before
  int64_t before = kNone;
  int64_t behind = kNone;
};

// Two neighbours that together are a piece.
struct Pair {
  float score = 0;
  int64_t left = 0;
  int64_t right = 0;
  int64_t left_token = 0;  // as it was when the pair was found
  int64_t right_token = 0;
  int64_t token = 0;

  // The highest score comes first, then the first place.
  bool operator<(const Pair& other) const {
    return std::pair(score, -left) < std::pair(other.score, -other.left);
  }
};

// The letters of UTF-8.
std::vector<std::string_view> letters_of(std::string_view text) {
  std::vector<std::string_view> letters;
  for (size_t i = 0; i < text.size();) {
    size_t length = 1;
    while (i + length < text.size() && (static_cast<uint8_t>(text[i + length]) & 0xC0U) == 0x80U) {
      ++length;
    }
    letters.push_back(text.substr(i, length));
    i += length;
  }
  return letters;
}

}  // namespace

Tokenizer::Tokenizer(std::vector<TokenPiece> pieces, const std::string& where)
    : pieces_(std::move(pieces)) {
  check(pieces_.size() >= kFirstByte + kBytes, where, ": needs a piece for each byte, at least ",
        kFirstByte + kBytes, " in all, has ", pieces_.size());
  // Some files write bytes as "<0x2C>", some as they are: then a comma has a piece of its own, too,
  // and it is that one which a model was trained on.
  longest_piece_ = 4;  // of a letter that is bytes
  for (size_t i = kFirstByte + kBytes; i < pieces_.size(); ++i) {
    tokens_.emplace(pieces_[i].text, static_cast<int64_t>(i));
    longest_piece_ = std::max(longest_piece_, pieces_[i].text.size());
  }
}

std::vector<int64_t> Tokenizer::encode(std::string_view text) const {
  check(is_utf8(text), "tokenizer: text must be UTF-8");
  if (text.empty()) return {};
  std::vector<Link> links;
  const auto add = [&](int64_t token) {
    const auto place = static_cast<int64_t>(links.size());
    if (place > 0) links.back().behind = place;
    links.push_back({.token = token, .before = place - 1});
  };
  const auto add_letter = [&](std::string_view letter) {
    const auto found = tokens_.find(std::string(letter));
    if (found != tokens_.end()) return add(found->second);
    for (const char byte : letter) add(kFirstByte + static_cast<uint8_t>(byte));
  };
  add_letter(" ");
  for (const auto letter : letters_of(text)) add_letter(letter);

  std::priority_queue<Pair> pairs;
  const auto look_at = [&](int64_t left) {
    if (left == kNone || links[left].behind == kNone) return;
    const auto right = links[left].behind;
    const auto a = links[left].token;
    const auto b = links[right].token;
    const auto found = tokens_.find(pieces_[a].text + pieces_[b].text);
    if (found == tokens_.end()) return;
    pairs.push({pieces_[found->second].score, left, right, a, b, found->second});
  };
  for (size_t i = 0; i < links.size(); ++i) look_at(static_cast<int64_t>(i));
  while (!pairs.empty()) {
    const auto pair = pairs.top();
    pairs.pop();
    auto& left = links[pair.left];
    auto& right = links[pair.right];
    if (left.token != pair.left_token || right.token != pair.right_token) continue;
    if (left.behind != pair.right) continue;
    left.token = pair.token;
    left.behind = right.behind;
    if (right.behind != kNone) links[right.behind].before = pair.left;
    right.token = kNone;
    look_at(left.before);
    look_at(pair.left);
  }
  std::vector<int64_t> tokens;
  for (const auto& link : links) {
    if (link.token != kNone) tokens.push_back(link.token);
  }
  return tokens;
}

std::string Tokenizer::bytes_of(int64_t token) const {
  check(token >= 0 && token < size(), "tokenizer: tokens must be from 0 to ", size() - 1, ", got ",
        token);
  const auto byte = token - kFirstByte;
  if (byte >= 0 && byte < static_cast<int64_t>(kBytes)) return {static_cast<char>(byte)};
  return pieces_[static_cast<size_t>(token)].text;
}

std::string Tokenizer::decode(const std::vector<int64_t>& tokens) const {
  std::string text;
  for (const auto token : tokens) {
    if (token != kBegin && token != kEnd) text += bytes_of(token);
  }
  return text.starts_with(' ') ? text.substr(1) : text;
}

}  // namespace kelvin
