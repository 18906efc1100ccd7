// Which path a call takes, in order of preference, and why a path declines.
#pragma once

#include <string>
#include <vector>

#include "torch/call.h"

namespace fovea {

// Why libtorch's fused attention cannot serve this call on its device; empty: it can.
std::vector<std::string> sdpa_declines(const Call& call, bool return_lse);

// Whether it would, if type, shape and requested results allowed it.
bool may_be_sdpas(const Call& call);

// The same for the kernels that are compiled at run time, forward and backward (`wanted` as in
// attend_backward). Compiles them where need be.
std::vector<std::string> kernels_decline(const Call& call);
std::vector<std::string> gradient_kernels_decline(const Call& call, at::IntArrayRef wanted);

// Whether those kernels read a call's keys and values in their pages, where it has some.
bool reads_pages(const Call& call);

// Throws Unsupported with every fused path's reasons.
[[noreturn]] void refuse_fallback(const Call& call, bool return_lse);

// Where the kernels decline a call with a user's function of the host (`custom`), which no other path on
// a device can compute: throws Unsupported with these reasons.
void refuse_host_function(const Call& call, const std::vector<std::string>& reasons);

std::string explain(const Call& call, bool return_lse);

}  // namespace fovea
