#pragma once

#include "kelvin/core/check.h"

// Before a function of plain loops: it is compiled once for each of these instruction sets, and the
// widest that the processor has is taken.  What it calls must be inlined into it.  The choice is
// made while libraries are loaded, which is too early for ThreadSanitizer.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define KELVIN_VECTOR_CLONES \
  __attribute__((target_clones("default", "arch=haswell", "arch=skylake-avx512")))
#else
#define KELVIN_VECTOR_CLONES
#endif

namespace kelvin {

// The body of a kernel where it is not written for the processor.  Nobody comes here who asked
// has_...() or suits_...() first.
[[noreturn]] inline void missing_kernel() {
  throw Error("kelvin/kernels: a kernel was called that this processor has no instructions for");
}

}  // namespace kelvin
