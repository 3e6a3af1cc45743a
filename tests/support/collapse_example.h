#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "kelvin/measures/collapse_readings.h"
#include "tests/support/tensors.h"

namespace kelvin {

// Three classes of three samples each, of which a fourth class has none.
class CollapseExample : public testing::Test {
 protected:
  static ClassSums sums() {
    ClassSums result(4, 5);
    result.update(rows(), labels());
    return result;
  }
  static torch::Tensor labels() { return torch::arange(9) % 3; }
  static torch::Tensor rows() { return noise({9, 5}, 1) + 3 * noise({3, 5}, 2).index({labels()}); }

  static Collapse with_spread(Collapse collapse) {
    ClassSpread spread(collapse.centres, collapse.cutoff);
    spread.update(rows(), labels());
    collapse.spread = spread;
    return collapse;
  }
  static Collapse first_pass() {
    return {.split = "train",
            .classes = 4,
            .features = 5,
            .width = 5,
            .cutoff = 1e-12,
            .centres = ClassCentres(sums())};
  }
  static std::vector<std::string> names(const Readings& readings) {
    std::vector<std::string> result;
    for (const auto& reading : readings) result.push_back(reading.name);
    return result;
  }
};

}  // namespace kelvin
