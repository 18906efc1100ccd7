// Forward-backward over a chain:
//   alpha_1[s] = u_1[s],  alpha_{i+1}[t] = u_{i+1}[t] + log sum_s exp(alpha_i[s] + b_i[s][t]),
//   log Z = log sum_s exp(alpha_n[s]);
// then the gradient of log Z, from the end: the gradient of a state is passed to the states before it
// in proportion to their terms of its sum.
#include <vector>

#include "engine/marginals/marginals.h"
#include "engine/runtime/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/marginals/chain.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "engine/marginals/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace chain {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct Direction {
  const T *unary, *pairwise;
};

// N: Plain or Dual. One vector of items.
template <class N, class T>
class Block {
 public:
  Block(const Chain<T>& chain, Direction<T> along, const ChainResult<T>& result, size_t first)
      : chain_(chain),
        along_(along),
        result_(result),
        items_(first, chain.batch, chain.lengths, chain.n),
        cell_(N::kVectors * hn::Lanes(hn::ScalableTag<T>())),
        memory_((chain.n + 1) * chain.states * cell_ + chain.states * chain.states * cell_),
        pairs_(memory_.data() + (chain.n + 1) * chain.states * cell_) {}

  void run() {
    const size_t n = static_cast<size_t>(items_.longest), states = chain_.states;
    N log_z = N::of(T(0));
    for (size_t i = 0; i < n; ++i) {
      if (i > 0) read_pairs(i - 1);
      for (size_t t = 0; t < states; ++t) {
        N sum = unary(i, t);
        if (i > 0) {
          sum = sum + lanes::log_sum_exp(N::of(T(0)), 0, states,
                                         [&](size_t s) { return alpha(i - 1, s) + pair(s, t); });
        }
        sum.store(alpha_cell(i, t));
      }
      const N total =
          lanes::log_sum_exp(N::of(T(0)), 0, states, [&](size_t s) { return alpha(i, s); });
      log_z = items_.where_length_is(i + 1, total, log_z);
    }
    if (result_.log_partition) items_.write(log_z.result(), result_.log_partition, 1);
    if (result_.unary || result_.pairwise) counts(n, log_z);
  }

 private:
  // What each state counts for, in place of the unary sums behind it: row n of the memory holds
  // those of position i + 1.
  HWY_INLINE void counts(size_t n, N log_z) {
    const size_t states = chain_.states;
    for (size_t s = 0; s < states; ++s) N::of(T(0)).store(alpha_cell(chain_.n, s));
    clear_past(n);
    for (size_t i = n; i-- > 0;) {
      if (i + 1 < n) read_pairs(i);
      std::vector<T>& now = now_;
      now.assign(states * cell_, T(0));
      for (size_t s = 0; s < states; ++s) {
        const N ends = lanes::share(alpha(i, s), log_z, N::of(T(1)));
        N count = items_.where_length_is(i + 1, ends, N::of(T(0)));
        for (size_t t = 0; i + 1 < n && t < states; ++t) {
          const N next = N::load(alpha_cell(chain_.n, t));
          const N part =
              lanes::share(alpha(i, s) + pair(s, t) + unary(i + 1, t), alpha(i + 1, t), next);
          if (result_.pairwise) {
            items_.write(part.result(), result_.pairwise + (i * states + s) * states + t,
                         (chain_.n - 1) * states * states);
          }
          count = count + part;
        }
        if (result_.unary)
          items_.write(count.result(), result_.unary + i * states + s, chain_.n * states);
        count.store(now.data() + s * cell_);
      }
      for (size_t s = 0; s < states; ++s)
        N::load(now.data() + s * cell_).store(alpha_cell(chain_.n, s));
    }
  }
  // Positions that no item of the block reaches.
  void clear_past(size_t n) {
    const size_t states = chain_.states;
    const auto zero = hn::Zero(hn::ScalableTag<T>());
    for (size_t i = n; result_.unary && i < chain_.n; ++i)
      for (size_t s = 0; s < states; ++s)
        items_.write(zero, result_.unary + i * states + s, chain_.n * states);
    for (size_t i = n == 0 ? 0 : n - 1; result_.pairwise && i + 1 < chain_.n; ++i)
      for (size_t p = 0; p < states * states; ++p)
        items_.write(zero, result_.pairwise + i * states * states + p,
                     (chain_.n - 1) * states * states);
  }

  HWY_INLINE N unary(size_t i, size_t s) const {
    const size_t at = i * chain_.states + s;
    return lanes::read(N::of(T(0)), items_, chain_.unary + at,
                       along_.unary ? along_.unary + at : nullptr, chain_.n * chain_.states, i);
  }
  void read_pairs(size_t i) {
    for (size_t p = 0; p < chain_.states * chain_.states; ++p) {
      const size_t at = i * chain_.pairwise_step + p;
      lanes::read(N::of(T(0)), items_, chain_.pairwise + at,
                  along_.pairwise ? along_.pairwise + at : nullptr, chain_.pairwise_item, i + 1)
          .store(pairs_ + p * cell_);
    }
  }
  HWY_INLINE N pair(size_t s, size_t t) const {
    return N::load(pairs_ + (s * chain_.states + t) * cell_);
  }
  T* alpha_cell(size_t i, size_t s) { return memory_.data() + (i * chain_.states + s) * cell_; }
  HWY_INLINE N alpha(size_t i, size_t s) { return N::load(alpha_cell(i, s)); }

  const Chain<T>& chain_;
  Direction<T> along_;
  const ChainResult<T>& result_;
  lanes::Items<T> items_;
  size_t cell_;
  std::vector<T> memory_, now_;
  T* pairs_;
};

template <class N, class T>
void run(const Chain<T>& chain, Direction<T> along, const ChainResult<T>& result,
         const Parallel& parallel) {
  const size_t wide = hn::Lanes(hn::ScalableTag<T>());
  const size_t blocks = (chain.batch + wide - 1) / wide;
  // An exp is worth some twenty multiply-adds.
  const double work = 40.0 * static_cast<double>(chain.batch) * static_cast<double>(chain.n) *
                      static_cast<double>(chain.states * chain.states);
  run_tickets(worth(parallel, work), blocks,
              [&](size_t, size_t block) { Block<N, T>(chain, along, result, block * wide).run(); });
}

}  // namespace chain

#define FOVEA_CHAIN(NAME, T, NUMBER)                                                             \
  void NAME(const Chain<T>& chain, const T* unary, const T* pairwise,                            \
            const ChainResult<T>& result, const Parallel& parallel) {                            \
    chain::run<lanes::NUMBER<T>>(chain, chain::Direction<T>{unary, pairwise}, result, parallel); \
  }
FOVEA_CHAIN(chain_f32, float, Plain)
FOVEA_CHAIN(chain_f64, double, Plain)
FOVEA_CHAIN(chain_along_f32, float, Dual)
FOVEA_CHAIN(chain_along_f64, double, Dual)
#undef FOVEA_CHAIN

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
HWY_EXPORT(chain_f32);
HWY_EXPORT(chain_f64);
HWY_EXPORT(chain_along_f32);
HWY_EXPORT(chain_along_f64);

template <>
void marginals(const Chain<float>& chain, const ChainResult<float>& result,
               const Parallel& parallel) {
  HWY_DYNAMIC_DISPATCH(chain_f32)(chain, nullptr, nullptr, result, parallel);
}
template <>
void marginals(const Chain<double>& chain, const ChainResult<double>& result,
               const Parallel& parallel) {
  HWY_DYNAMIC_DISPATCH(chain_f64)(chain, nullptr, nullptr, result, parallel);
}
template <>
void marginals_along(const Chain<float>& chain, const float* unary, const float* pairwise,
                     const ChainResult<float>& result, const Parallel& parallel) {
  HWY_DYNAMIC_DISPATCH(chain_along_f32)(chain, unary, pairwise, result, parallel);
}
template <>
void marginals_along(const Chain<double>& chain, const double* unary, const double* pairwise,
                     const ChainResult<double>& result, const Parallel& parallel) {
  HWY_DYNAMIC_DISPATCH(chain_along_f64)(chain, unary, pairwise, result, parallel);
}
}  // namespace fovea::engine
#endif
