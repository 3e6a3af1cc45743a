#include "kelvin/formats/strided_view.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/support/errors.h"

namespace kelvin {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

std::string refusal_of(const StridedView& view) {
  return error_of([&] { check_inside(view, "a"); });
}

// The elements of a view of the letters a to l, which must lie inside of them.
std::string letters(const StridedView& shape_and_strides) {
  auto view = shape_and_strides;
  view.storage = "abcdefghijkl";
  check_inside(view, "a");
  const auto copy = copied_rows(view);
  if (view.is_contiguous()) {
    EXPECT_EQ(contiguous_bytes(view), copy);
  }
  return copy;
}

TEST(StridedView, GivesElementsRowByRow) {
  EXPECT_EQ(letters({.shape = {3, 4}, .strides = {4, 1}}), "abcdefghijkl");
  EXPECT_EQ(letters({.shape = {4, 3}, .strides = {1, 4}}), "aeibfjcgkdhl");
  EXPECT_EQ(letters({.offset = 1, .shape = {3}, .strides = {4}}), "bfj");
  EXPECT_EQ(letters({.shape = {2, 3, 2}, .strides = {1, 4, 2}}), "acegikbdfhjl");
  EXPECT_EQ(letters({.shape = {2, 2}, .strides = {0, 1}}), "abab");
  EXPECT_EQ(letters({.shape = {2, 2}, .strides = {1, 0}}), "aabb");
  EXPECT_EQ(letters({.element_bytes = 4, .shape = {3}, .strides = {1}}), "abcdefghijkl");
  EXPECT_EQ(letters({.element_bytes = 4, .shape = {2}, .strides = {2}}), "abcdijkl");
  EXPECT_EQ(letters({.offset = 11}), "l");
}

TEST(StridedView, IsEmptyWhereASizeIsZero) {
  EXPECT_EQ(letters({.shape = {0}, .strides = {1}}), "");
  EXPECT_EQ(letters({.offset = 99, .shape = {2, 0, 3}, .strides = {kHuge, 5, kHuge}}), "");
}

TEST(StridedView, IsContiguousIfNoElementLiesElsewhere) {
  EXPECT_TRUE((StridedView{.shape = {}, .strides = {}}.is_contiguous()));
  EXPECT_TRUE((StridedView{.shape = {2, 3}, .strides = {3, 1}}.is_contiguous()));
  EXPECT_TRUE((StridedView{.shape = {1, 3, 1}, .strides = {99, 1, 0}}.is_contiguous()));
  EXPECT_TRUE((StridedView{.shape = {2, 0}, .strides = {7, 7}}.is_contiguous()));
  EXPECT_FALSE((StridedView{.shape = {3, 2}, .strides = {1, 3}}.is_contiguous()));
  EXPECT_FALSE((StridedView{.shape = {2, 3}, .strides = {4, 1}}.is_contiguous()));
  EXPECT_FALSE((StridedView{.shape = {2}, .strides = {0}}.is_contiguous()));
}

TEST(StridedView, MustLieInsideOfItsStorage) {
  const std::string outside = "a: lies outside of its storage, which has 3 elements";
  const StridedView view{.storage = "abcabc", .element_bytes = 2};
  const auto with = [&](int64_t offset, std::vector<int64_t> shape, std::vector<int64_t> strides) {
    auto other = view;
    other.offset = offset;
    other.shape = std::move(shape);
    other.strides = std::move(strides);
    return refusal_of(other);
  };
  EXPECT_EQ(with(3, {}, {}), outside);
  EXPECT_EQ(with(0, {4}, {1}), outside);
  EXPECT_EQ(with(1, {2}, {2}), outside);
  EXPECT_EQ(with(0, {2, 2}, {2, 1}), outside);
  EXPECT_EQ(with(kHuge, {2}, {1}), outside);
  EXPECT_EQ(with(0, {3}, {kHuge}), outside);
  EXPECT_EQ(with(1, {2, 2}, {kHuge, 1}), outside);
  EXPECT_EQ(with(-1, {1}, {1}), "a: offset and strides must not be negative");
  EXPECT_EQ(with(2, {3}, {-1}), "a: offset and strides must not be negative");
  EXPECT_EQ(with(0, {3}, {}), "a: must have as many strides as sizes, 1, has 0");
}

}  // namespace
}  // namespace kelvin
