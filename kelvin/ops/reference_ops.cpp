#include "kelvin/ops/reference_ops.h"

#include <torch/types.h>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

thread_local bool is_on_here = false;

}  // namespace

bool uses_reference_ops() { return is_on_here; }

ReferenceOpsScope::ReferenceOpsScope(bool is_on) : was_on_(is_on_here) { is_on_here = is_on; }

ReferenceOpsScope::~ReferenceOpsScope() { is_on_here = was_on_; }

void check_first_derivative(const char* function) {
  check(!torch::GradMode::is_enabled(), function,
        ": has first derivatives only; those of higher order need a ReferenceOpsScope");
}

}  // namespace kelvin
