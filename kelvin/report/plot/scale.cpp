#include "kelvin/report/plot/scale.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>

#include "kelvin/core/text.h"

namespace kelvin {
namespace {

std::string superscript(int64_t number) {
  static const std::array<const char*, 10> digits = {"⁰", "¹", "²", "³", "⁴",
                                                     "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = number < 0 ? "⁻" : "";
  for (const char digit : std::to_string(std::abs(number))) {
    text += digits.at(static_cast<size_t>(digit - '0'));
  }
  return text;
}

}  // namespace

bool is_shown(double value, const Axis& axis) {
  return std::isfinite(value) && (!axis.is_log || value > 0);
}

PlotRange padded_range(const Axis& axis, PlotRange data, double air) {
  if (data.is_empty())
    data = axis.is_log ? PlotRange{.low = 0.1, .high = 10} : PlotRange{.low = 0, .high = 1};
  if (axis.is_log) {
    const double factor = data.low == data.high ? 2 : std::pow(data.high / data.low, air);
    data = {.low = data.low / factor, .high = data.high * factor};
    data.low = std::max(data.low, std::numeric_limits<double>::min());
    data.high = std::min(data.high, std::numeric_limits<double>::max());
  } else {
    const double extent = data.high / 2 - data.low / 2;
    const double margin = extent > 0 ? 2 * air * extent : std::max(std::abs(data.low) * 0.1, 0.5);
    constexpr double kLargest = std::numeric_limits<double>::max();
    data = {.low = std::max(data.low - margin, -kLargest),
            .high = std::min(data.high + margin, kLargest)};
  }
  if (axis.low) data.low = *axis.low;
  if (axis.high) data.high = *axis.high;
  if (!(data.low < data.high)) data.high = axis.is_log ? data.low * 10 : data.low + 1;
  return data;
}

double Scale::position(double value) const { return is_log_ ? std::log10(value) : value; }

double Scale::operator()(double value) const {
  const double low = position(range_.low);
  const double high = position(range_.high);
  // Halves first: the difference of two large numbers may overflow.
  const double fraction = (position(value) / 2 - low / 2) / (high / 2 - low / 2);
  return start_ + std::clamp(fraction, -10.0, 10.0) * (end_ - start_);
}

std::vector<double> linear_ticks(double low, double high, int64_t count) {
  const double span = high - low;
  if (!std::isfinite(span) || span <= 0 || count < 1) return {};
  const double rough = span / static_cast<double>(count);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= rough * 0.999) {
      step = factor * power;
      break;
    }
  }
  if (!(step > 0)) return {};
  std::vector<double> ticks;
  const double first = std::ceil(low / step - 1e-9);
  for (int64_t i = 0; i <= 2 * count + 2; ++i) {
    const double tick = (first + static_cast<double>(i)) * step;
    if (tick > high + 1e-9 * span) break;
    // Through decimals, so that 0.30000000000000004 is 0.3.
    ticks.push_back(std::stod(fmt::format("{:.12g}", tick)));
  }
  return ticks;
}

std::vector<double> log_ticks(double low, double high, int64_t count) {
  if (!(low > 0) || !(high > low) || !std::isfinite(high) || count < 1) return {};
  const auto first = static_cast<int64_t>(std::floor(std::log10(low)));
  const auto last = static_cast<int64_t>(std::floor(std::log10(high)));
  const int64_t step = std::max<int64_t>(1, (last - first + count) / (count + 1));
  const bool is_short = std::log10(high / low) < 2;
  std::vector<double> ticks;
  for (int64_t exponent = first; exponent <= last; ++exponent) {
    if (exponent % step != 0) continue;
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && !is_short) break;
      // Division keeps 1e-3 exact where a power of 0.1 would not.
      const double power = std::pow(10.0, static_cast<double>(std::abs(exponent)));
      const double tick = exponent < 0 ? factor / power : factor * power;
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push_back(tick);
    }
  }
  return ticks;
}

std::vector<double> ticks_of(const Axis& axis, const PlotRange& range, int64_t count) {
  if (axis.is_log) return log_ticks(range.low, range.high, count);
  auto ticks = linear_ticks(range.low, range.high, count);
  if (axis.is_whole) std::erase_if(ticks, [](double tick) { return tick != std::round(tick); });
  return ticks;
}

std::string number_text(double value) {
  const auto text = short_number(value, 4);
  return text.starts_with("-") ? "−" + text.substr(1) : text;
}

std::string tick_text(double value, const Axis& axis) {
  if (axis.is_percent) return number_text(std::round(value * 1e6) / 1e4) + " %";
  if (axis.is_log && value > 0) {
    const double exponent = std::log10(value);
    const bool is_power = std::abs(exponent - std::round(exponent)) < 1e-9;
    if (is_power && std::abs(exponent) > 2.5) {
      return "10" + superscript(static_cast<int64_t>(std::llround(exponent)));
    }
  }
  return number_text(value);
}

std::string hover_text(double value, const Axis& axis) {
  if (!axis.names.empty()) {
    const auto place = static_cast<size_t>(std::max(value, 0.0));
    if (place < axis.names.size()) return axis.names[place];
  }
  return axis.is_percent ? fmt::format("{:.1f} %", 100 * value) : number_text(value);
}

}  // namespace kelvin
