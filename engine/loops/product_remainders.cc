// Blocks of a product that are smaller than the full block: at the last rows and columns of a tile,
// and at the edges of a mask.
#include "engine/loops/product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/loops/product_remainders.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "engine/simd/product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace product {

template <class T, size_t kR, size_t kV, Side kSide, Edge kEdge>
HWY_NOINLINE void multiply_call(const Block<T>& m) {
  multiply<T, kR, kV, kSide, kEdge, Prefetch::kNothing>(m);
}

template <class T, Side kSide, size_t kR>
HWY_INLINE void multiply_rows(size_t vectors, const Block<T>& m) {
  if (m.lanes != 0) return multiply_call<T, kR, 1, kSide, Edge::kPartial>(m);
  if constexpr (kR < kRows) {
    if (vectors == kVectors) return multiply_call<T, kR, kVectors, kSide, Edge::kWhole>(m);
  }
  if constexpr (kVectors > 2) {
    if (vectors == 3) return multiply_call<T, kR, 3, kSide, Edge::kWhole>(m);
    if (vectors == 2) return multiply_call<T, kR, 2, kSide, Edge::kWhole>(m);
  }
  multiply_call<T, kR, 1, kSide, Edge::kWhole>(m);
}

template <class T, Side kSide>
void multiply_remainder(size_t rows, size_t vectors, const Block<T>& m) {
  if (rows == kRows) return multiply_rows<T, kSide, kRows>(vectors, m);
  if constexpr (kRows > 4) {
    if (rows == 4) return multiply_rows<T, kSide, 4>(vectors, m);
  }
  if (rows == 2) return multiply_rows<T, kSide, 2>(vectors, m);
  multiply_rows<T, kSide, 1>(vectors, m);
}

template void multiply_remainder<float, Side::kPlain>(size_t, size_t, const Block<float>&);
template void multiply_remainder<float, Side::kTransposed>(size_t, size_t, const Block<float>&);
template void multiply_remainder<double, Side::kPlain>(size_t, size_t, const Block<double>&);
template void multiply_remainder<double, Side::kTransposed>(size_t, size_t, const Block<double>&);

}  // namespace product
}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();
