#pragma once

namespace kelvin {

// Whether this thread is to compute with LibTorch's own operations, one by one, where kelvin has
// kernels that do several of them in one pass.  Both give the same numbers but for rounding.
bool is_plain();

// While it lives, this thread takes the plain path, or does not.
class ReferenceOpsScope {
 public:
  explicit ReferenceOpsScope(bool plain);
  ~ReferenceOpsScope();
  ReferenceOpsScope(const ReferenceOpsScope&) = delete;
  ReferenceOpsScope& operator=(const ReferenceOpsScope&) = delete;

 private:
  bool was_plain_;
};

// To be called where a gradient is computed by a kernel: an Error if the gradient of that gradient
// is to be recorded, which a kernel cannot do.
void check_first_derivative(const char* function);

}  // namespace kelvin
