#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "kelvin/core/check.h"
#include "kelvin/formats/images.h"

namespace kelvin {

// libjpeg and libpng report errors by a function that must not return; a jump leaves it.  A jump
// runs no destructors, so all that it may pass is in the decoder and in frames without any: a step
// calls the library, and only it.
class ErrorJump {
 public:
  // Whether `step` came to its end.  It and what it calls must have no locals with destructors.
  template <class Step>
  bool completes(Step step) {
    static_assert(std::is_trivially_destructible_v<Step>);
    if (setjmp(jump_) != 0) return false;
    step();
    return true;
  }

  // To the step that is under way.
  [[noreturn]] void leave() { std::longjmp(jump_, 1); }

 private:
  std::jmp_buf jump_ = {};
};

// An Error if a header claims more pixels than a picture may have or than `bytes` can hold, of
// which they need at least `least_bytes`.
inline void check_claimed_size(const PictureSize& size, int64_t least_bytes, size_t bytes,
                               const std::string& where, const char* format) {
  check(size.width * size.height <= kMostPixels, where, ": a ", format, " may have up to ",
        kMostPixels, " pixels, has ", size.width, "x", size.height);
  check(least_bytes <= static_cast<int64_t>(bytes), where, ": is cut off or damaged: claims ",
        size.width, "x", size.height, " pixels in ", bytes, " bytes");
}

}  // namespace kelvin
