#pragma once

#include <vector>

namespace kelvin {

// Student's t-test of pairs: whether the mean of `a` less `b`, such as two methods on the same
// seeds, could be 0.
struct PairedTest {
  double difference = 0;  // mean of a - b
  double t = 0;           // over its standard error; infinite if all differences are the same
  double p = 1;           // two-sided; 1 if there is no difference at all
};

// Throws an Error unless there are as many of both, at least two.
PairedTest paired_test(const std::vector<double>& a, const std::vector<double>& b);

// The probability that Student's t with so many degrees of freedom is beyond `t` or below -t.
double student_tails(double t, double degrees_of_freedom);

}  // namespace kelvin
