#include "kelvin/report/tables/text_table.h"

#include <algorithm>
#include <vector>

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

namespace {

using Cells = std::vector<std::string>;
using Widths = std::vector<size_t>;

constexpr size_t kColumnGap = 2;
constexpr size_t kLongWord = 18;  // longer ones, paths for example, may be broken

// Names of readings are long and broken after underscores and hyphens, if they must be.
size_t longest_piece(const std::string& text) {
  size_t longest = 0;
  for (const auto& word : split(text, ' ')) {
    for (size_t begin = 0; begin < word.size();) {
      const auto end = std::min(word.find_first_of("_-", begin), word.size() - 1) + 1;
      longest = std::max(longest, shown_width(word.substr(begin, end - begin)));
      begin = end;
    }
  }
  return longest;
}

// What each column would like to have.
Widths natural_widths(const Table& table) {
  Widths widths;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    size_t width = shown_width(table.columns[i].name);
    for (const auto& row : table.rows) width = std::max(width, shown_width(cell_of(row, i)));
    widths.push_back(width);
  }
  return widths;
}

// What each column must have: its numbers in one piece, its words as far as they are short.
Widths least_widths(const Table& table) {
  Widths widths;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const auto& column = table.columns[i];
    size_t width = longest_piece(column.name);
    for (const auto& row : table.rows) {
      const auto cell = cell_of(row, i);
      width = std::max(width, column.alignment == Alignment::right
                                  ? shown_width(cell)
                                  : std::min(longest_piece(cell), kLongWord));
    }
    widths.push_back(width);
  }
  return widths;
}

size_t total_of(const Widths& widths) {
  size_t total = widths.empty() ? 0 : kColumnGap * (widths.size() - 1);
  for (const auto width : widths) total += width;
  return total;
}

// The widest column gives way first, so that long texts wrap before short ones do.
Widths shrunk(Widths widths, const Widths& least, size_t width) {
  while (total_of(widths) > width) {
    size_t widest = widths.size();
    for (size_t i = 0; i < widths.size(); ++i) {
      const bool may_shrink = widths[i] > least[i];
      if (may_shrink && (widest == widths.size() || widths[i] > widths[widest])) widest = i;
    }
    if (widest == widths.size()) break;
    --widths[widest];
  }
  return widths;
}

std::string padded(const std::string& text, size_t width, Alignment alignment) {
  const std::string space(width - std::min(width, shown_width(text)), ' ');
  return alignment == Alignment::left ? text + space : space + text;
}

enum class Place { top, bottom };

// One row, of as many lines as its longest cell has; the others stand at the top or the bottom.
std::string row_text(const Table& table, const Cells& row, const Widths& widths, Place place) {
  std::vector<std::vector<std::string>> cells;
  size_t height = 1;
  for (size_t i = 0; i < widths.size(); ++i) {
    cells.push_back(wrapped_lines(cell_of(row, i), widths[i]));
    height = std::max(height, cells.back().size());
  }
  std::string text;
  for (size_t line = 0; line < height; ++line) {
    std::string shown;
    for (size_t i = 0; i < widths.size(); ++i) {
      const size_t above = place == Place::bottom ? height - cells[i].size() : 0;
      const bool has_line = line >= above && line - above < cells[i].size();
      if (i > 0) shown += std::string(kColumnGap, ' ');
      shown +=
          padded(has_line ? cells[i][line - above] : "", widths[i], table.columns[i].alignment);
    }
    shown.erase(shown.find_last_not_of(' ') + 1);
    text += shown + "\n";
  }
  return text;
}

std::string body_text(const Table& table, const Widths& widths) {
  Cells names;
  Cells rules;
  for (size_t i = 0; i < widths.size(); ++i) {
    names.push_back(table.columns[i].name);
    rules.emplace_back(widths[i], '-');
  }
  auto text = row_text(table, names, widths, Place::bottom);
  text += row_text(table, rules, widths, Place::top);
  for (const auto& row : table.rows) text += row_text(table, row, widths, Place::top);
  return text;
}

// The first column and those from `begin` to before `end`.
Table part_of(const Table& table, size_t begin, size_t end) {
  Table part{.columns = {table.columns.front()}};
  part.columns.insert(part.columns.end(), table.columns.begin() + static_cast<ptrdiff_t>(begin),
                      table.columns.begin() + static_cast<ptrdiff_t>(end));
  for (const auto& row : table.rows) {
    Cells cells = {cell_of(row, 0)};
    for (size_t i = begin; i < end; ++i) cells.push_back(cell_of(row, i));
    part.rows.push_back(std::move(cells));
  }
  return part;
}

std::string columns_text(const Table& table, size_t width) {
  const auto natural = natural_widths(table);
  if (width == 0 || total_of(natural) <= width) return body_text(table, natural);
  const auto least = least_widths(table);
  if (total_of(least) <= width || table.columns.size() <= 2) {
    return body_text(table, shrunk(natural, least, width));
  }
  std::string text;
  for (size_t begin = 1; begin < table.columns.size();) {
    size_t end = begin + 1;
    size_t used = least[0] + kColumnGap + least[begin];
    while (end < table.columns.size() && used + kColumnGap + least[end] <= width) {
      used += kColumnGap + least[end++];
    }
    if (!text.empty()) text += "\n";
    text += columns_text(part_of(table, begin, end), width);
    begin = end;
  }
  return text;
}

std::string wrapped_paragraph(const std::string& text, size_t width) {
  return join(wrapped_lines(text, width), "\n") + "\n";
}

}  // namespace

std::string fitted_text(const Table& table, size_t width) {
  std::string text = table.title.empty() ? "" : wrapped_paragraph(table.title, width) + "\n";
  text += columns_text(table, width);
  for (size_t i = 0; i < table.notes.size(); ++i) {
    text += (i == 0 ? "\n" : "") + wrapped_paragraph(table.notes[i], width);
  }
  return text;
}

}  // namespace kelvin
