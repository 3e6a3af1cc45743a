#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace kelvin {

template <class Number>
struct LineAllocator {
  using value_type = Number;  // NOLINT(readability-identifier-naming): the name vectors look for
  static constexpr std::align_val_t kLine{64};  // bytes of a line of the caches

  LineAllocator() = default;
  template <class Other>
  LineAllocator(const LineAllocator<Other>&) {}

  Number* allocate(size_t count) {
    return static_cast<Number*>(::operator new(count * sizeof(Number), kLine));
  }
  void deallocate(Number* numbers, size_t) { ::operator delete(numbers, kLine); }

  friend bool operator==(const LineAllocator&, const LineAllocator&) { return true; }
};

// Begins where a line of the caches does: sixteen floats that lie across two of them take two
// reads.
template <class Number>
using LineVector = std::vector<Number, LineAllocator<Number>>;

}  // namespace kelvin
