#pragma once

#include <cstdint>
#include <vector>

namespace kelvin {

struct Summary {
  int64_t count = 0;
  double mean = 0;
  double deviation = 0;   // of a sample (n - 1); 0 for a single value
  double half_width = 0;  // of the 95 % interval of the mean by Student's t; 0 for a single value
  double smallest = 0;
  double largest = 0;
};

// Throws an Error for no values.
Summary summarise(const std::vector<double>& values);

}  // namespace kelvin
