#include "kelvin/formats/strided_view.h"

#include <algorithm>
#include <cstring>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

// Copies the elements of one row, `stride` apart.
void copy_row(const StridedView& view, int64_t from, char* to) {
  const auto step = static_cast<uint64_t>(view.strides.back()) * view.element_bytes;
  const auto* source = view.storage.data() + static_cast<uint64_t>(from) * view.element_bytes;
  for (int64_t i = 0; i < view.shape.back(); ++i) {
    std::memcpy(to, source, view.element_bytes);
    to += view.element_bytes;
    if (i + 1 < view.shape.back()) source += step;  // not past the storage
  }
}

// Steps `index` to the next row, and `from` along; false after the last one.
bool next_row(const StridedView& view, std::vector<int64_t>& index, int64_t& from) {
  for (size_t axis = index.size() - 1; axis-- > 0;) {
    if (++index[axis] < view.shape[axis]) {
      from += view.strides[axis];
      return true;
    }
    from -= (view.shape[axis] - 1) * view.strides[axis];
    index[axis] = 0;
  }
  return false;
}

}  // namespace

int64_t StridedView::size() const {
  int64_t count = 1;
  for (const auto length : shape) count *= length;
  return count;
}

bool StridedView::is_contiguous() const {
  int64_t expected = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] != 1 && strides[axis] != expected) return size() == 0;
    expected *= std::max<int64_t>(shape[axis], 1);
  }
  return true;
}

void check_inside(const StridedView& view, const std::string& where) {
  check(view.strides.size() == view.shape.size(), where, ": must have as many strides as sizes, ",
        view.shape.size(), ", has ", view.strides.size());
  const bool is_negative =
      view.offset < 0 || std::any_of(view.strides.begin(), view.strides.end(),
                                     [](int64_t stride) { return stride < 0; });
  check(!is_negative, where, ": offset and strides must not be negative");
  if (view.size() == 0) return;
  const auto elements = view.storage.size() / view.element_bytes;
  int64_t last = view.offset;
  bool overflows = false;
  for (size_t axis = 0; axis < view.shape.size(); ++axis) {
    int64_t reach = 0;
    overflows = overflows ||
                __builtin_mul_overflow(view.shape[axis] - 1, view.strides[axis], &reach) ||
                __builtin_add_overflow(last, reach, &last);
  }
  check(!overflows && static_cast<uint64_t>(last) < elements, where,
        ": lies outside of its storage, which has ", elements, " elements");
}

std::string_view contiguous_bytes(const StridedView& view) {
  if (view.size() == 0) return {};  // its offset may be any
  return view.storage.substr(static_cast<uint64_t>(view.offset) * view.element_bytes,
                             static_cast<uint64_t>(view.size()) * view.element_bytes);
}

std::string copied_rows(const StridedView& view) {
  if (view.is_contiguous()) return std::string(contiguous_bytes(view));
  std::string bytes(static_cast<uint64_t>(view.size()) * view.element_bytes, '\0');
  const auto row_bytes = static_cast<uint64_t>(view.shape.back()) * view.element_bytes;
  std::vector<int64_t> index(view.shape.size(), 0);
  auto from = view.offset;
  auto* to = bytes.data();
  do {
    copy_row(view, from, to);
    to += row_bytes;
  } while (next_row(view, index, from));
  return bytes;
}

}  // namespace kelvin
