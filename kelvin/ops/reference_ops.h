#pragma once

namespace kelvin {

// Whether this thread is to compute with LibTorch's own operations, one by one, where kelvin has
// kernels that do several of them in one pass.  Both give the same numbers but for rounding.
bool uses_reference_ops();

// While it lives, this thread uses reference ops, or does not.
class ReferenceOpsScope {
 public:
  explicit ReferenceOpsScope(bool is_on);
  ~ReferenceOpsScope();
  ReferenceOpsScope(const ReferenceOpsScope&) = delete;
  ReferenceOpsScope& operator=(const ReferenceOpsScope&) = delete;

 private:
  bool was_on_;
};

// To be called where a gradient is computed by a kernel: an Error if the gradient of that gradient
// is to be recorded, which a kernel cannot do.
void check_first_derivative(const char* function);

}  // namespace kelvin
