// e'_ij = e_ij + b_ij, b any broadcast of [B, H, L, S]; db is de summed over what b repeats.
//
// The gradient is as large as b, so tiles add to it in place. Tiles that share elements run one after
// another (see Sharing).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/modifiers/bias.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <array>

#include "engine/registry.h"
#include "engine/simd/export.h"
#include "engine/simd/reduce-inl.h"
#include "engine/call/view.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace bias {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
class Stage final : public ModifierStage<T> {
  using D = hn::ScalableTag<T>;
  static constexpr size_t N = HWY_LANES(T);

 public:
  Stage(const StageContext& context, size_t index) {
    const Geometry& g = context.geometry;
    const std::array<int64_t, 4> shape = {
        static_cast<int64_t>(g.batches), static_cast<int64_t>(g.heads),
        static_cast<int64_t>(g.max_queries), static_cast<int64_t>(g.max_keys)};
    bias_ = broadcast_to(std::get<Bias>(context.problem.score.modifiers[index]).bias, shape,
                         "score.bias");
    if (!context.gradients) return;
    const View& wanted = std::get<Bias>(context.gradients->score.modifiers[index]).bias;
    if (wanted) gradient_ = broadcast_to(wanted, shape, "gradient of score.bias");
  }

  typename ModifierStage<T>::Sharing sharing() const override {
    if (!gradient_) return {};
    return {.batches = repeats(0), .heads = repeats(1), .keys = repeats(3)};
  }

  void apply(Tile<T>& tile, const T*, T*) const override {
    const D d;
    for (size_t r = 0; r < tile.nq; ++r) {
      T* s = tile.s + r * tile.s_stride;
      const size_t begin = tile.row_begin(r), end = tile.row_end(r);
      const int64_t i = query(tile, r);
      if (bias_.dtype != dtype_of<T>() || tile.key_index || bias_.stride[3] > 1) {
        for (size_t c = begin; c < end; ++c)
          s[c] += read<T>(bias_, tile.batch, tile.head, i, key(tile, c));
        continue;
      }
      const T* b = &element<T>(bias_, tile.batch, tile.head, i, static_cast<int64_t>(tile.k0));
      size_t c = begin;
      if (bias_.stride[3] == 0) {
        const auto all = hn::Set(d, *b);
        for (; c + N <= end; c += N) hn::StoreU(hn::Add(hn::LoadU(d, s + c), all), d, s + c);
        for (; c < end; ++c) s[c] += *b;
      } else {
        for (; c + N <= end; c += N)
          hn::StoreU(hn::Add(hn::LoadU(d, s + c), hn::LoadU(d, b + c)), d, s + c);
        for (; c < end; ++c) s[c] += b[c];
      }
    }
  }

  Addend<T> addend(const Tile<T>& tile, T*) const override {
    if (bias_.dtype != dtype_of<T>() || tile.key_index || tile.query_index || bias_.stride[3] != 1)
      return {};
    return {&element<T>(bias_, tile.batch, tile.head, static_cast<int64_t>(tile.q0),
                        static_cast<int64_t>(tile.k0)),
            static_cast<ptrdiff_t>(bias_.stride[2])};
  }

  void backward(Tile<T>& tile, T*, const T*, T*) const override {
    if (!gradient_) return;
    for (size_t r = 0; r < tile.nq; ++r) {
      const T* ds = tile.ds + r * tile.s_stride;
      const size_t begin = tile.row_begin(r), end = tile.row_end(r);
      if (begin >= end) continue;
      const int64_t i = query(tile, r);
      if (tile.key_index || gradient_.stride[3] > 1) {
        for (size_t c = begin; c < end; ++c)
          element<T>(gradient_, tile.batch, tile.head, i, key(tile, c)) += ds[c];
        continue;
      }
      T* out = &element<T>(gradient_, tile.batch, tile.head, i, static_cast<int64_t>(tile.k0));
      if (gradient_.stride[3] == 0) {
        *out += sum(ds, begin, end);
      } else {
        add(ds, begin, end, out);
      }
    }
  }

 private:
  bool repeats(int dimension) const {
    return gradient_.size[dimension] > 1 && gradient_.stride[dimension] == 0;
  }
  static int64_t query(const Tile<T>& tile, size_t r) {
    return tile.query_index ? tile.query_index[r] : static_cast<int64_t>(tile.q0 + r);
  }
  static int64_t key(const Tile<T>& tile, size_t c) {
    return tile.key_index ? tile.key_index[c] : static_cast<int64_t>(tile.k0 + c);
  }
  static T sum(const T* ds, size_t begin, size_t end) {
    const D d;
    auto total = hn::Zero(d);
    size_t c = begin;
    for (; c + N <= end; c += N) total = hn::Add(total, hn::LoadU(d, ds + c));
    T rest = 0;
    for (; c < end; ++c) rest += ds[c];
    return sum_of_lanes(d, total) + rest;
  }
  static void add(const T* HWY_RESTRICT ds, size_t begin, size_t end, T* HWY_RESTRICT out) {
    const D d;
    size_t c = begin;
    for (; c + N <= end; c += N)
      hn::StoreU(hn::Add(hn::LoadU(d, out + c), hn::LoadU(d, ds + c)), d, out + c);
    for (; c < end; ++c) out[c] += ds[c];
  }

  View bias_, gradient_;
};

}  // namespace bias

FOVEA_TARGET_MODIFIER_FACTORY(make_bias, bias::Stage)

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
FOVEA_MODIFIER_FACTORY(make_bias)
}  // namespace fovea::engine
#endif
