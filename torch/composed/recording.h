#pragma once

#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace fovea::composed {

// Records gradients, also inside a kernel that runs below autograd.
class Recording {
 public:
  Recording() : keys_(included(), excluded()), mode_(true) {}

 private:
  static c10::DispatchKeySet included() {
    return c10::impl::tls_local_dispatch_key_set().included_;
  }
  static c10::DispatchKeySet excluded() {
    return c10::impl::tls_local_dispatch_key_set().excluded_ -
           c10::autograd_dispatch_keyset_with_ADInplaceOrView;
  }
  c10::impl::ForceDispatchKeyGuard keys_;
  at::AutoGradMode mode_;
};

}  // namespace fovea::composed
