#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <utility>

namespace kelvin {

// A kernel that this library registers with PyTorch's dispatcher, without a gradient of its own.
// Called through it, traces, TorchScript and torch.compile see a call of a known result where they
// could not look at the numbers.
template <class Signature>
class RegisteredKernel {
 public:
  explicit RegisteredKernel(const char* name)
      : handle_(
            c10::Dispatcher::singleton().findSchemaOrThrow(name, "").template typed<Signature>()) {}

  template <class... Arguments>
  auto operator()(Arguments&&... arguments) const {
    const at::AutoDispatchBelowADInplaceOrView without_gradients;
    return handle_.call(std::forward<Arguments>(arguments)...);
  }

 private:
  c10::TypedOperatorHandle<Signature> handle_;
};

}  // namespace kelvin
