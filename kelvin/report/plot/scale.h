#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace kelvin {

// From values to places on the page, and which numbers stand at an axis.

struct Axis {
  std::string label = {};
  bool is_log = false;
  bool is_percent = false;  // values are fractions
  bool is_whole = false;    // no ticks between whole numbers
  std::optional<double> low = {};
  std::optional<double> high = {};
  std::vector<std::string> names = {};  // for x: the texts at 0, 1, 2, ...
};

// The smallest interval that holds all values given to it.
struct PlotRange {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool is_empty() const { return low > high; }
};

// Whether the axis has a place for it: finite, and positive on a log axis.
bool is_shown(double value, const Axis& axis);

// The axis' own limits win; else the data with some air, and never of width zero.
PlotRange padded_range(const Axis& axis, PlotRange data, double air);

// Where data values lie on the page.
class Scale {
 public:
  Scale(const Axis& axis, PlotRange range, double start, double end)
      : is_log_(axis.is_log), range_(range), start_(start), end_(end) {}

  double operator()(double value) const;

  const PlotRange& range() const { return range_; }
  double start() const { return start_; }
  double end() const { return end_; }

 private:
  double position(double value) const;

  bool is_log_;
  PlotRange range_;
  double start_;
  double end_;
};

// Round numbers in [low, high], about `count` of them.
std::vector<double> linear_ticks(double low, double high, int64_t count);
// Powers of ten in [low, high], thinned out to about `count`; with 2 and 5 if
// the range is short.  Needs 0 < low.
std::vector<double> log_ticks(double low, double high, int64_t count);
std::vector<double> ticks_of(const Axis& axis, const PlotRange& range, int64_t count);

// Four digits, with a true minus sign.
std::string number_text(double value);
// At the axis: "25 %", "10⁻³".
std::string tick_text(double value, const Axis& axis);
// Beside a point: more digits, or the name at that place.
std::string hover_text(double value, const Axis& axis);

}  // namespace kelvin
