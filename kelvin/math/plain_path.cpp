#include "kelvin/math/plain_path.h"

#include <torch/types.h>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

thread_local bool plain_here = false;

}  // namespace

bool is_plain() { return plain_here; }

PlainScope::PlainScope(bool plain) : was_plain_(plain_here) { plain_here = plain; }

PlainScope::~PlainScope() { plain_here = was_plain_; }

void check_first_derivative(const char* function) {
  check(!torch::GradMode::is_enabled(), function,
        ": has first derivatives only; those of higher order need a PlainScope");
}

}  // namespace kelvin
