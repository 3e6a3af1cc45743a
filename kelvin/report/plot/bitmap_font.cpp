#include "kelvin/report/plot/bitmap_font.h"

#include <algorithm>
#include <array>

namespace kelvin {
namespace {

constexpr int64_t kPitch = 6;  // columns of a letter and of the gap behind it, below
constexpr size_t kLettersPerSheet = 12;
constexpr unsigned char kFirst = ' ';
constexpr unsigned char kUnknown = 127;  // the last one: an empty box
constexpr int64_t kSpaceWidth = 3;

using Sheet = std::array<std::string_view, kTextHeight>;

// From the space on, in the order of ASCII.
constexpr std::array<Sheet, 8> kSheets = {{
    {{
        "        #    # #   # #    #   ##     ##     #      #   #               ",
        "        #    # #   # #   #### ##  # #  #    #     #     #     #     #  ",
        "        #    # #  ##### # #      #  # #     #    #       #  # # #   #  ",
        "        #          # #   ###    #    #           #       #   ###  #####",
        "        #         #####   # #  #    # # #        #       #  # # #   #  ",
        "                   # #  ####  #  ## #  #          #     #     #     #  ",
        "        #          # #    #      ##  ## #          #   #               ",
        "                                                                       ",
        "                                                                       ",
    }},
    {{
        "                      #  ###    #    ###   ###     #  #####   ##  #####",
        "                      # #   #  ##   #   # #   #   ##  #      #        #",
        "                     #  #  ##   #       #     #  # #  ####  #        # ",
        "       ###          #   # # #   #     ##    ##  #  #      # ####    #  ",
        "                   #    ##  #   #    #        # #####     # #   #   #  ",
        " ##               #     #   #   #   #     #   #    #  #   # #   #  #   ",
        "  #           #   #      ###   ###  #####  ###     #   ###   ###   #   ",
        " #                                                                     ",
        "                                                                       ",
    }},
    {{
        " ###   ###                  #        #     ###   ###    #   ####   ### ",
        "#   # #   #                #          #   #   # #   #  # #  #   # #   #",
        "#   # #   #   #     #     #   #####    #      # # ### #   # #   # #    ",
        " ###   ####              #              #    #  # # # #   # ####  #    ",
        "#   #     #               #   #####    #    #   # ### ##### #   # #    ",
        "#   #    #    #    ##      #          #         #     #   # #   # #   #",
        " ###   ##           #       #        #      #    ###  #   # ####   ### ",
        "                   #                                                   ",
        "                                                                       ",
    }},
    {{
        "####  ##### #####  ###  #   #  ###      # #   # #     #   # #   #  ### ",
        "#   # #     #     #   # #   #   #       # #  #  #     ## ## #   # #   #",
        "#   # #     #     #     #   #   #       # # #   #     # # # ##  # #   #",
        "#   # ####  ####  # ### #####   #       # ##    #     # # # # # # #   #",
        "#   # #     #     #   # #   #   #       # # #   #     #   # #  ## #   #",
        "#   # #     #     #   # #   #   #   #   # #  #  #     #   # #   # #   #",
        "####  ##### #      ###  #   #  ###   ###  #   # ##### #   # #   #  ### ",
        "                                                                       ",
        "                                                                       ",
    }},
    {{
        "####   ###  ####   ###  ##### #   # #   # #   # #   # #   # #####  ### ",
        "#   # #   # #   # #   #   #   #   # #   # #   # #   # #   #     #  #   ",
        "#   # #   # #   # #       #   #   # #   # #   #  # #  #   #    #   #   ",
        "####  #   # ####   ###    #   #   # #   # # # #   #    # #    #    #   ",
        "#     # # # # #       #   #   #   #  # #  # # #  # #    #    #     #   ",
        "#     #  #  #  #  #   #   #   #   #  # #  # # # #   #   #   #      #   ",
        "#      ## # #   #  ###    #    ###    #    # #  #   #   #   #####  ### ",
        "                                                                       ",
        "                                                                       ",
    }},
    {{
        "#      ###    #          #          #               #         ##       ",
        "#        #   # #          #         #               #        #         ",
        " #       #  #   #              ###  ####   ###   ####  ###  ####   ####",
        "  #      #                        # #   # #   # #   # #   #  #    #   #",
        "   #     #                     #### #   # #     #   # #####  #    #   #",
        "    #    #                    #   # #   # #   # #   # #      #    #   #",
        "    #  ###                     #### ####   ###   ####  ####  #     ####",
        "                  #####                                               #",
        "                                                                   ### ",
    }},
    {{
        "#       #     #   #      #                                             ",
        "#                 #      #                                             ",
        "####    #     #   #  #   #    ## #  ####   ###  ####   #### # ##   ####",
        "#   #   #     #   # #    #    # # # #   # #   # #   # #   # ##    #    ",
        "#   #   #     #   ##     #    # # # #   # #   # #   # #   # #      ### ",
        "#   #   #     #   # #    #    # # # #   # #   # #   # #   # #         #",
        "#   #   #     #   #  #    #   # # # #   #  ###  ####   #### #     #### ",
        "              #                                 #         #            ",
        "            ##                                  #         #            ",
    }},
    {{
        " #                                           #    #    #          #####",
        " #                                          #     #     #         #   #",
        "####  #   # #   # #   # #   # #   # #####   #     #     #    #    #   #",
        " #    #   # #   # # # #  # #  #   #    #   #      #      #  # # # #   #",
        " #    #   # #   # # # #   #   #   #   #     #     #     #      #  #   #",
        " #    #   #  # #  # # #  # #  #   #  #      #     #     #         #   #",
        "  ##   ####   #    # #  #   #  #### #####    #    #    #          #####",
        "                                  #                                    ",
        "                               ###                                     ",
    }},
}};

// The columns of one letter in its sheet, without those that are empty on either side.
struct Letter {
  const Sheet* sheet = nullptr;
  int64_t first = 0;
  int64_t width = 0;

  bool has_ink(int64_t column, int64_t row) const {
    const auto& line = sheet->at(static_cast<size_t>(row));
    return line.at(static_cast<size_t>(first + column)) == '#';
  }

  bool has_ink(int64_t column) const {
    for (int64_t row = 0; row < kTextHeight; ++row) {
      if (has_ink(column, row)) return true;
    }
    return false;
  }
};

Letter letter_of(unsigned char code) {
  const auto index = static_cast<size_t>(code) - kFirst;
  Letter letter{.sheet = &kSheets.at(index / kLettersPerSheet),
                .first = static_cast<int64_t>(index % kLettersPerSheet) * kPitch,
                .width = kPitch - 1};
  if (code == ' ') return {.sheet = letter.sheet, .first = letter.first, .width = kSpaceWidth};
  while (!letter.has_ink(0)) {
    ++letter.first;
    --letter.width;
  }
  while (!letter.has_ink(letter.width - 1)) --letter.width;
  return letter;
}

// Takes the first character off `text`.
Letter next_letter(std::string_view& text) {
  const auto code = static_cast<unsigned char>(text.front());
  text.remove_prefix(1);
  if (code >= kFirst && code < kUnknown) return letter_of(code);
  // The rest of a character of several bytes.
  while (!text.empty() && (static_cast<unsigned char>(text.front()) & 0xc0) == 0x80) {
    text.remove_prefix(1);
  }
  return letter_of(kUnknown);
}

void draw_letter(Picture& picture, int64_t left, int64_t top, const Letter& letter,
                 const TextColour& colour) {
  for (int64_t row = 0; row < kTextHeight; ++row) {
    for (int64_t column = 0; column < letter.width; ++column) {
      const auto x = left + column;
      const auto y = top + row;
      const bool is_inside = x >= 0 && x < picture.width && y >= 0 && y < picture.height;
      if (!is_inside || !letter.has_ink(column, row)) continue;
      const auto at = static_cast<size_t>((y * picture.width + x) * 3);
      picture.rgb.at(at) = colour.red;
      picture.rgb.at(at + 1) = colour.green;
      picture.rgb.at(at + 2) = colour.blue;
    }
  }
}

}  // namespace

int64_t pixel_width(std::string_view text) {
  int64_t width = 0;
  while (!text.empty()) width += next_letter(text).width + 1;
  return std::max<int64_t>(width - 1, 0);
}

std::string shortened_to(std::string_view text, int64_t width) {
  if (pixel_width(text) <= width) return std::string(text);
  constexpr std::string_view kEllipsis = "...";
  size_t kept = 0;
  int64_t used = pixel_width(kEllipsis);
  for (auto rest = text; !rest.empty();) {
    used += next_letter(rest).width + 1;
    if (used > width) break;
    kept = text.size() - rest.size();
  }
  return std::string(text.substr(0, kept)) += kEllipsis;
}

void draw_text(Picture& picture, int64_t left, int64_t top, std::string_view text,
               const TextColour& colour) {
  while (!text.empty()) {
    const auto letter = next_letter(text);
    draw_letter(picture, left, top, letter, colour);
    left += letter.width + 1;
  }
}

}  // namespace kelvin
