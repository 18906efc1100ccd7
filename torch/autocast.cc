// Under torch.autocast, query, key and value are converted to its type, as in libtorch's attention.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include "torch/lists.h"
#include "torch/operators.h"

namespace fovea::operators {
namespace {

template <c10::DeviceType device>
struct Autocast {
  c10::impl::ExcludeDispatchKeyGuard off{
      at::autocast::get_autocast_dispatch_key_from_device_type(device)};

  Tensor operator()(const Tensor& x) const {
    return at::autocast::cached_cast(at::autocast::get_autocast_dtype(device), x, device);
  }
};

template <c10::DeviceType device>
Outputs attend_autocast(const Tensor& query, const Tensor& key, const Tensor& value,
                        c10::string_view choices, at::TensorList arrays,
                        c10::SymIntArrayRef numbers, const OptionalTensor& key_lengths,
                        double dropout_p, const OptionalTensor& seed, bool return_lse, bool strict,
                        const OptionalTensor& query_offset, bool check_finite) {
  const Autocast<device> cast;
  return attend(cast(query), cast(key), cast(value), choices, arrays, numbers, key_lengths,
                dropout_p, seed, return_lse, strict, query_offset, check_finite);
}

template <c10::DeviceType device>
std::tuple<Tensor, Tensor> weights_autocast(
    const Tensor& query, const Tensor& key, c10::string_view choices, at::TensorList arrays,
    c10::SymIntArrayRef numbers, const OptionalTensor& key_lengths, const OptionalTensor& seed,
    const OptionalTensor& rows, const OptionalTensor& heads, int64_t top_k, bool column_sums,
    const OptionalTensor& query_offset, bool check_finite) {
  const Autocast<device> cast;
  return weights(cast(query), cast(key), choices, arrays, numbers, key_lengths, seed, rows, heads,
                 top_k, column_sums, query_offset, check_finite);
}

}  // namespace

TORCH_LIBRARY_IMPL(fovea, AutocastCPU, m) {
  m.impl("attend", with_lists<attend_autocast<at::kCPU>>());
  m.impl("weights", with_lists<weights_autocast<at::kCPU>>());
}
TORCH_LIBRARY_IMPL(fovea, AutocastCUDA, m) {
  m.impl("attend", with_lists<attend_autocast<at::kCUDA>>());
  m.impl("weights", with_lists<weights_autocast<at::kCUDA>>());
}

}  // namespace fovea::operators
