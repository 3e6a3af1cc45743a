#include "kelvin/core/byte_text.h"

#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"

namespace kelvin {
namespace {

constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
constexpr double kStep = 1024;

}  // namespace

std::string byte_text(int64_t bytes) {
  auto amount = static_cast<double>(bytes);
  size_t unit = 0;
  while (amount >= kStep && unit + 1 < kUnits.size()) {
    amount /= kStep;
    ++unit;
  }
  return short_number(amount, 3) + " " + kUnits.at(unit);
}

int64_t bytes_of(const std::string& text, const std::string& where) {
  char* end = nullptr;
  double amount = std::strtod(text.c_str(), &end);
  while (std::isspace(static_cast<unsigned char>(*end)) != 0) ++end;
  const std::string unit = end;
  bool is_known = end != text.c_str() && (unit.empty() || unit == kUnits[0]);
  double factor = 1;
  for (size_t i = 1; i < kUnits.size() && !is_known; ++i) {
    factor *= kStep;
    const std::string name = kUnits.at(i);
    is_known = end != text.c_str() && (unit == name || unit == name.substr(0, 1));
  }
  amount *= factor;
  constexpr double kMost = 1e18;
  check(is_known && std::isfinite(amount) && amount >= 1 && amount <= kMost, where,
        ": must be an amount of memory such as 4GiB or 512MiB, got '", text, "'");
  return static_cast<int64_t>(amount);
}

}  // namespace kelvin
