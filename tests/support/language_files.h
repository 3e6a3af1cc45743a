#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace kelvin {

template <class Number>
void append_number(std::string& bytes, Number value) {
  char raw[sizeof(Number)];
  std::memcpy(raw, &value, sizeof(Number));
  bytes.append(raw, sizeof(Number));
}

// The seven numbers at the begin of a checkpoint of llama2.c.
struct Llama2cHeader {
  int32_t width = 8;
  int32_t hidden = 12;
  int32_t layers = 2;
  int32_t heads = 2;
  int32_t key_heads = 1;
  int32_t vocabulary = 300;  // below 0: the classifier has weights of its own
  int32_t context = 16;
};

// A checkpoint with drawn weights.
inline std::string llama2c_bytes(const Llama2cHeader& header = {}, uint32_t seed = 0) {
  std::string bytes;
  for (const auto number : {header.width, header.hidden, header.layers, header.heads,
                            header.key_heads, header.vocabulary, header.context}) {
    append_number(bytes, number);
  }
  const int32_t tokens = header.vocabulary < 0 ? -header.vocabulary : header.vocabulary;
  const int32_t head_width = header.width / header.heads;
  const int32_t keys = head_width * header.key_heads;
  const int32_t of_layer = 2 * header.width + 2 * header.width * (header.width + keys) +
                           3 * header.width * header.hidden;
  const int32_t numbers = tokens * header.width * (header.vocabulary < 0 ? 2 : 1) +
                          header.layers * of_layer + header.width + header.context * head_width;
  std::mt19937 random(seed);
  for (int32_t i = 0; i < numbers; ++i) {
    append_number(bytes, static_cast<float>(random() % 2001) / 1000 - 1);
  }
  return bytes;
}

// A tokenizer of llama2.c: nothing known, begin, end, 256 bytes, then these pieces; the earlier,
// the gladlier they are put together; filled up to `size`.
inline std::string tokenizer_bytes(const std::vector<std::string>& pieces, size_t size = 300) {
  std::vector<std::string> all = {"<unk>", "\n<s>\n", "\n</s>\n"};
  constexpr const char* kDigits = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) {
    all.push_back(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">");
  }
  all.insert(all.end(), pieces.begin(), pieces.end());
  while (all.size() < size) all.push_back("<" + std::to_string(all.size()) + ">");
  std::string bytes;
  append_number(bytes, int32_t{16});
  for (size_t i = 0; i < all.size(); ++i) {
    append_number(bytes, -static_cast<float>(i));
    append_number(bytes, static_cast<int32_t>(all[i].size()));
    bytes += all[i];
  }
  return bytes;
}

}  // namespace kelvin
