#include "kelvin/ops/reference_ops.h"

#include <torch/types.h>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

thread_local bool plain_here = false;

}  // namespace

bool is_plain() { return plain_here; }

ReferenceOpsScope::ReferenceOpsScope(bool plain) : was_plain_(plain_here) { plain_here = plain; }

ReferenceOpsScope::~ReferenceOpsScope() { plain_here = was_plain_; }

void check_first_derivative(const char* function) {
  check(!torch::GradMode::is_enabled(), function,
        ": has first derivatives only; those of higher order need a ReferenceOpsScope");
}

}  // namespace kelvin
