#include "torch/cuda/known_calls.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "torch/cuda/sdpa.h"
#include "torch/dispatch.h"
#include "torch/engine_call.h"
#include "torch/layout.h"

namespace fovea::operators {
namespace {

constexpr int kRank = 4, kOperands = 3;

// All that the choice of a path depends on, beside the choices.
struct Shape {
  std::array<int64_t, 2 * kRank * kOperands> sizes_and_strides;
  at::ScalarType type;
  c10::DeviceIndex device;
  bool needs_gradient;
  std::array<bool, 5> settings;  // libtorch's, of its attention
  bool operator==(const Shape&) const = default;
};

bool is_plain(const Tensor& x, const Tensor& query) {
  constexpr int64_t kLoad = 16;  // bytes: no copy is made of such rows
  if (x.dim() != kRank || x.device() != query.device() || x.scalar_type() != query.scalar_type() ||
      x.numel() == 0 || x.stride(-1) != 1 || torch::autograd::isFwGradDefined(x))
    return false;
  const auto bytes = static_cast<int64_t>(x.element_size());
  bool whole = x.storage_offset() * bytes % kLoad == 0 && x.size(-1) * bytes % kLoad == 0;
  for (int64_t d = 0; d + 1 < kRank; ++d) whole = whole && x.stride(d) * bytes % kLoad == 0;
  return whole;
}

// Whether only autograd and the device itself look at calls with these tensors.
bool only_device(const Tensor& query, const Tensor& key, const Tensor& value) {
  using c10::DispatchKey;
  static const c10::DispatchKeySet usual =
      c10::DispatchKeySet({DispatchKey::CUDA, DispatchKey::AutogradCUDA,
                           DispatchKey::ADInplaceOrView, DispatchKey::BackendSelect}) |
      c10::autograd_dispatch_keyset;
  const c10::impl::LocalDispatchKeySet local = c10::impl::tls_local_dispatch_key_set();
  const c10::DispatchKeySet all =
      ((query.key_set() | key.key_set() | value.key_set() | local.included_) - local.excluded_);
  return (all - usual).raw_repr() >> c10::num_backends == 0;
}

std::optional<Shape> shape_of(const Tensor& query, const Tensor& key, const Tensor& value) {
  if (!query.is_cuda() || !only_device(query, key, value)) return std::nullopt;
  Shape shape{};
  auto* to = shape.sizes_and_strides.data();
  for (const Tensor* x : {&query, &key, &value}) {
    if (!is_plain(*x, query)) return std::nullopt;
    to = std::copy_n(x->sizes().data(), kRank, to);
    to = std::copy_n(x->strides().data(), kRank, to);
  }
  shape.type = query.scalar_type();
  shape.device = query.device().index();
  shape.needs_gradient =
      at::GradMode::is_enabled() &&
      (query.requires_grad() || key.requires_grad() || value.requires_grad());
  const at::Context& context = at::globalContext();
  shape.settings = {context.userEnabledFlashSDP(), context.userEnabledMemEfficientSDP(),
                    context.userEnabledMathSDP(), context.userEnabledCuDNNSDP(),
                    context.deterministicAlgorithms()};
  return shape;
}

struct Known {
  Shape shape;
  std::string choices;
  bool is_looked_at = false;  // else met once
  bool is_sdpas = false, causal = false;
  std::optional<double> scale;
};

// The latest first.
std::vector<Known>& known_here() {
  thread_local std::vector<Known> known;
  return known;
}

// The place of a shape, now the first; null for one that is new.
Known* find(const Shape& shape, std::string_view choices) {
  std::vector<Known>& known = known_here();
  const auto found = std::find_if(known.begin(), known.end(), [&](const Known& one) {
    return one.choices == choices && one.shape == shape;
  });
  if (found == known.end()) return nullptr;
  std::rotate(known.begin(), found, found + 1);
  return &known.front();
}

std::string_view view(c10::string_view text) { return {text.data(), text.size()}; }

}  // namespace

std::optional<Tensor> known_sdpa(const Tensor& query, const Tensor& key, const Tensor& value,
                                 c10::string_view choices) {
  if (known_here().empty()) return std::nullopt;
  const auto shape = shape_of(query, key, value);
  if (!shape) return std::nullopt;
  const Known* const call = find(*shape, view(choices));
  if (!call || !call->is_sdpas) return std::nullopt;
  const bool grouped = query.size(1) != key.size(1);
  return laid_out(at::scaled_dot_product_attention(query, key, value, {}, 0.0, call->causal,
                                                   call->scale, grouped),
                  output_layout(query, value));
}

void remember_sdpa(const Tensor& query, const Tensor& key, const Tensor& value,
                   c10::string_view choices) {
  constexpr size_t kMost = 16;
  const auto shape = shape_of(query, key, value);
  if (!shape) return;
  Known* const known = find(*shape, view(choices));
  if (!known) {  // the keys of a decoder grow with each call: no shape comes twice
    std::vector<Known>& all = known_here();
    if (all.size() == kMost) all.pop_back();
    all.insert(all.begin(), {.shape = *shape, .choices = std::string(view(choices))});
    return;
  }
  if (known->is_looked_at) return;
  const Call call = call_of(query, key, value, choices, {}, {}, {}, 0, {}, {});
  known->is_looked_at = true;
  known->is_sdpas = sdpa_declines(call, /*return_lse=*/false).empty();
  if (!known->is_sdpas) return;
  known->causal = find_structure<Causal>(call.choices.structure) != nullptr;
  known->scale = std::get<Dot>(call.choices.score.kind).scale;
}

}  // namespace fovea::operators
