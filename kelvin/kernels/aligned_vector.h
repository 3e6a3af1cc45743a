#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace kelvin {

template <class Number>
struct AlignedAllocator {
  using value_type = Number;  // NOLINT(readability-identifier-naming): the name vectors look for
  static constexpr std::align_val_t kLine{64};  // bytes of a line of the caches

  AlignedAllocator() = default;
  template <class Other>
  AlignedAllocator(const AlignedAllocator<Other>&) {}

  Number* allocate(size_t count) {
    return static_cast<Number*>(::operator new(count * sizeof(Number), kLine));
  }
  void deallocate(Number* numbers, size_t) { ::operator delete(numbers, kLine); }

  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) { return true; }
};

// Begins where a line of the caches does: sixteen floats that lie across two of them take two
// reads.
template <class Number>
using AlignedVector = std::vector<Number, AlignedAllocator<Number>>;

// Room for `count` numbers that stays with this thread, so that kernels need not allocate.  It is
// the caller's until somebody on this thread asks for the same type and place again, and holds
// whatever was left in it.
template <class Number, int kPlace = 0>
Number* thread_scratch(int64_t count) {
  thread_local AlignedVector<Number> buffer;
  if (buffer.size() < static_cast<size_t>(count)) buffer.resize(static_cast<size_t>(count));
  return buffer.data();
}

// The least multiple of `unit` that is not less than `size`; neither is negative.
constexpr int64_t rounded_up(int64_t size, int64_t unit) { return (size + unit - 1) / unit * unit; }

}  // namespace kelvin
