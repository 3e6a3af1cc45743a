#include "kelvin/report/plot/axes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kelvin::axes_test {

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(XAxis, TurnsNamesThatAreTooLongAndLeavesSomeOut) {
  Axis axis{.names = {"a", "b"}};
  const auto scale = [&] {
    return Scale(axis, {.low = 0, .high = static_cast<double>(axis.names.size())}, 0, 400);
  };
  EXPECT_EQ(count_of(x_axis(axis, scale(), 300), "rotate"), 0U);
  EXPECT_EQ(bottom_margin(axis, 400), bottom_margin({}, 400));
  axis.names = std::vector<std::string>(100, "encoder.block.attention");
  const auto turned = count_of(x_axis(axis, scale(), 300), "rotate");
  EXPECT_GT(turned, 10U);
  EXPECT_LT(turned, 50U);
  EXPECT_GT(bottom_margin(axis, 400), bottom_margin({}, 400));
}

TEST(YAxis, HasALineOfTheGridAtEachTick) {
  const Axis axis{.label = "accuracy", .is_percent = true};
  const auto svg = y_axis(axis, Scale(axis, {.low = 0, .high = 1}, 300, 0), 50, 500);
  EXPECT_EQ(count_of(svg, "class=\"grid\""), 6U);
  EXPECT_EQ(count_of(svg, ">100 %<"), 1U);
  EXPECT_EQ(count_of(svg, ">accuracy<"), 1U);
}

}  // namespace kelvin::axes_test
