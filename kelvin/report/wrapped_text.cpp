#include "kelvin/report/wrapped_text.h"

#include <algorithm>

#include "kelvin/core/text.h"

namespace kelvin {
namespace {

bool is_continued(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Bytes of the first `width` code points.
size_t bytes_of_columns(std::string_view text, size_t width) {
  size_t end = 0;
  for (size_t columns = 0; end < text.size(); ++columns) {
    if (columns == width) break;
    ++end;
    while (end < text.size() && is_continued(text[end])) ++end;
  }
  return end;
}

// Where a word that does not fit into `width` columns is broken, in bytes.
size_t break_of(std::string_view word, size_t width) {
  const auto most = bytes_of_columns(word, width);
  const auto after = word.substr(0, most).find_last_of("/,_=-.");
  // A single sign on a line is no help to the reader.
  return after == std::string_view::npos || after == 0 ? most : after + 1;
}

}  // namespace

size_t shown_width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !is_continued(byte); }));
}

std::vector<std::string> wrapped_lines(std::string_view text, size_t width) {
  if (width == 0 || shown_width(text) <= width) return {std::string(text)};
  std::vector<std::string> lines = {""};
  for (std::string_view word : split(text, ' ')) {
    const auto used = shown_width(lines.back());
    if (used > 0 && used + 1 + shown_width(word) <= width) {
      lines.back() += ' ';
      lines.back() += word;
      continue;
    }
    if (used > 0) lines.emplace_back();
    while (shown_width(word) > width) {
      const auto end = break_of(word, width);
      lines.back() += word.substr(0, end);
      lines.emplace_back();
      word.remove_prefix(end);
    }
    lines.back() += word;
  }
  return lines;
}

}  // namespace kelvin
