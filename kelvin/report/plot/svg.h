#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kelvin {

// The elements that figures are made of, in the units of their view box; assets/figure.css says
// what the classes look like.

// Of the whole figure, and the margins around the plot.
inline constexpr double kFigureWidth = 540;
inline constexpr double kFigureHeight = 330;
inline constexpr double kTopMargin = 14;
inline constexpr double kLeftMargin = 58;
inline constexpr double kBottomMargin = 46;
inline constexpr double kRightMargin = 16;

inline constexpr double kLetterWidth = 6.4;  // of an average letter of the labels

// What a text takes; `text` is UTF-8.
double text_width(std::string_view text);

// Texts are escaped, classes and colours are not.
std::string svg_text(double x, double y, const std::string& classes, const std::string& text);
std::string svg_line(double x1, double y1, double x2, double y2, const std::string& classes);
// Ends in </svg>, which the caller adds.
std::string svg_opening(const std::string& title, const std::string& description);

// The class of a colour of the palette.
std::string colour_class(int64_t colour);
// Colours for `count` ordered groups, cold to warm, and one for what belongs to no group.
int64_t palette_colour(size_t index, size_t count);
inline constexpr int64_t kNeutralColour = 7;

// The style that the figures of one page share.
const std::string& figure_css();
// One figure with its style inside, for a file of its own.
std::string standalone_svg(const std::string& svg);

}  // namespace kelvin
