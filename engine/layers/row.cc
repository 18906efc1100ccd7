#include "engine/layers/row.h"

#include <cmath>
#include <cstring>
#include <new>

#include "engine/runtime/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/layers/row.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "engine/simd/math-inl.h"
#include "engine/simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace row {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

// Two sets of sums, of even and of odd inputs: one set alone would wait for itself on wide vectors.
void panel_product(const float* HWY_RESTRICT panel, size_t inputs, const float* HWY_RESTRICT x,
                   float* HWY_RESTRICT y) {
  const D d;
  constexpr size_t kLanes = hn::MaxLanes(D()), kVectors = PackedRows::kPanel / kLanes;
  hn::Vec<D> even[kVectors], odd[kVectors];
  for (size_t v = 0; v < kVectors; ++v) even[v] = odd[v] = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 <= inputs; i += 2, panel += 2 * PackedRows::kPanel) {
    const auto first = hn::Set(d, x[i]), second = hn::Set(d, x[i + 1]);
    for (size_t v = 0; v < kVectors; ++v) {
      even[v] = hn::MulAdd(hn::Load(d, panel + v * kLanes), first, even[v]);
      odd[v] = hn::MulAdd(hn::Load(d, panel + PackedRows::kPanel + v * kLanes), second, odd[v]);
    }
  }
  if (i < inputs) {
    const auto last = hn::Set(d, x[i]);
    for (size_t v = 0; v < kVectors; ++v)
      even[v] = hn::MulAdd(hn::Load(d, panel + v * kLanes), last, even[v]);
  }
  for (size_t v = 0; v < kVectors; ++v) hn::StoreU(hn::Add(even[v], odd[v]), d, y + v * kLanes);
}

void normalise(const float* HWY_RESTRICT x, size_t width, const float* HWY_RESTRICT weight,
               const float* HWY_RESTRICT bias, float epsilon, float* HWY_RESTRICT out) {
  const D d;
  const size_t lanes = hn::Lanes(d), whole = width - width % lanes;
  const auto n = static_cast<float>(width);
  float mean = 0;
  if (bias != nullptr) {
    auto sum = hn::Zero(d);
    for (size_t c = 0; c < whole; c += lanes) sum = hn::Add(sum, hn::LoadU(d, x + c));
    mean = sum_of_lanes(d, sum);
    for (size_t c = whole; c < width; ++c) mean += x[c];
    mean /= n;
  }
  const auto centre = hn::Set(d, mean);
  auto squares = hn::Zero(d);
  for (size_t c = 0; c < whole; c += lanes) {
    const auto v = hn::Sub(hn::LoadU(d, x + c), centre);
    squares = hn::MulAdd(v, v, squares);
  }
  float total = sum_of_lanes(d, squares);
  for (size_t c = whole; c < width; ++c) total += (x[c] - mean) * (x[c] - mean);
  const float inverse = 1.0f / std::sqrt(total / n + epsilon);
  const auto scale = hn::Set(d, inverse);
  for (size_t c = 0; c < whole; c += lanes) {
    const auto v = hn::Mul(hn::Sub(hn::LoadU(d, x + c), centre), scale);
    const auto w = hn::Mul(v, hn::LoadU(d, weight + c));
    hn::StoreU(bias == nullptr ? w : hn::Add(w, hn::LoadU(d, bias + c)), d, out + c);
  }
  for (size_t c = whole; c < width; ++c)
    out[c] = (x[c] - mean) * inverse * weight[c] + (bias == nullptr ? 0.0f : bias[c]);
}

void gate(float* HWY_RESTRICT gate, const float* HWY_RESTRICT up, size_t width) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const auto one = hn::Set(d, 1.0f);
  size_t c = 0;
  for (; c + lanes <= width; c += lanes) {
    const auto g = hn::LoadU(d, gate + c);
    const auto silu = hn::Div(g, hn::Add(one, exp(d, hn::Neg(g))));
    hn::StoreU(hn::Mul(silu, hn::LoadU(d, up + c)), d, gate + c);
  }
  for (; c < width; ++c) gate[c] = gate[c] / (1.0f + std::exp(-gate[c])) * up[c];
}

}  // namespace row

void panel_products_f32(const PackedRows& weights, size_t from, size_t to, const float* x,
                        float* y) {
  for (size_t p = from; p < to; ++p)
    row::panel_product(weights.panel(p), weights.inputs(), x, y + p * PackedRows::kPanel);
}
void normalise_row_f32(const float* x, size_t width, const float* weight, const float* bias,
                       float epsilon, float* out) {
  row::normalise(x, width, weight, bias, epsilon, out);
}
void gate_row_f32(float* gate, const float* up, size_t width) { row::gate(gate, up, width); }

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
HWY_EXPORT(panel_products_f32);
HWY_EXPORT(normalise_row_f32);
HWY_EXPORT(gate_row_f32);

namespace {
constexpr std::align_val_t kLine{64};
}

void PackedRows::Free::operator()(float* p) const { ::operator delete[](p, kLine); }

PackedRows::PackedRows(size_t outputs, size_t inputs) : outputs_(outputs), inputs_(inputs) {
  const size_t bytes = padded() * inputs * sizeof(float);
  values_.reset(static_cast<float*>(::operator new[](bytes, kLine)));
  std::memset(values_.get(), 0, bytes);
}

void PackedRows::put(size_t first, const float* weight, size_t rows) {
  for (size_t r = 0; r < rows; ++r) {
    const size_t output = first + r;
    float* const to = values_.get() + output / kPanel * kPanel * inputs_ + output % kPanel;
    for (size_t i = 0; i < inputs_; ++i) to[i * kPanel] = weight[r * inputs_ + i];
  }
}

void row_product(const PackedRows& weights, const float* x, float* y, const Parallel& parallel) {
  const double work = static_cast<double>(weights.padded()) * static_cast<double>(weights.inputs());
  if (parallel.workers < 2 || work < 2.0 * static_cast<double>(kGrain)) {
    HWY_DYNAMIC_DISPATCH(panel_products_f32)(weights, 0, weights.panels(), x, y);
    return;
  }
  run_tickets(worth(parallel, work), weights.panels(), [&](size_t, size_t p) {
    HWY_DYNAMIC_DISPATCH(panel_products_f32)(weights, p, p + 1, x, y);
  });
}

void normalise_row(const float* x, size_t width, const float* weight, const float* bias,
                   float epsilon, float* out) {
  HWY_DYNAMIC_DISPATCH(normalise_row_f32)(x, width, weight, bias, epsilon, out);
}
void gate_row(float* gate, const float* up, size_t width) {
  HWY_DYNAMIC_DISPATCH(gate_row_f32)(gate, up, width);
}

}  // namespace fovea::engine
#endif
