#include "kelvin/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

namespace kelvin {
namespace {

// Levenshtein, row by row.
size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < to.size(); ++j) {
      const size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t start = 0;
  for (size_t end = text.find(separator); end != std::string_view::npos;
       end = text.find(separator, start)) {
    parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  parts.emplace_back(text.substr(start));
  return parts;
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  std::string nearest;
  constexpr size_t kMostBytes = 200;  // nobody's misspelt name is longer; comparing would take long
  if (name.size() > kMostBytes) return nearest;
  size_t smallest = std::max<size_t>(name.size() / 2, 1) + 1;
  for (const auto& candidate : candidates) {
    const size_t distance = edit_distance(name, candidate);
    if (distance >= smallest) continue;
    smallest = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string short_number(double value, int digits) {
  if (std::isfinite(value) && value == std::round(value) && std::abs(value) < 1e6) {
    return fmt::format("{}", static_cast<int64_t>(value));
  }
  return fmt::format("{:.{}g}", value, digits);
}

std::string short_duration(double seconds) {
  if (!(seconds < 1e15)) return "–";  // not known, or no time anybody waits for
  const auto whole = static_cast<int64_t>(std::llround(std::max(seconds, 0.0)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

bool comes_before(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  // Without leading zeros: the longer number is the larger one.
  const auto number_at = [&](std::string_view text, size_t at) {
    while (at + 1 < text.size() && text[at] == '0' && is_digit(text[at + 1])) ++at;
    const auto begin = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return std::pair(text.substr(begin, at - begin), at);
  };
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const auto [first, after_first] = number_at(a, i);
      const auto [second, after_second] = number_at(b, j);
      if (first.size() != second.size()) return first.size() < second.size();
      if (first != second) return first < second;
      i = after_first;
      j = after_second;
      continue;
    }
    if (a[i] != b[j]) return a[i] < b[j];
    ++i;
    ++j;
  }
  return i == a.size() && j < b.size();
}

}  // namespace kelvin
