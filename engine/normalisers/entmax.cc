// alpha-entmax (Peters et al. 2019): with z = (alpha - 1) e and p = 1 / (alpha - 1),
//
//   a = max(0, z - tau)^p,   tau such that they sum to 1.
//
// alpha = 1.5 has p = 2; alpha = 2 is sparsemax. At alpha = 1, and for a trained alpha below 1, it is
// the limit, softmax.
//
// Only scores above the largest - p can have weight. Newton's iteration on these starts from the
// left. It is monotone if p >= 1, because the sum is convex in tau; otherwise it is kept in a bracket.
// For alpha = 1.5 the last step solves the quadratic equation of the support found so far. Backward
// (Correia et al. 2019): with g = a^(2 - alpha) on the support, de = g (dA - sum g dA / sum g).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/normalisers/entmax.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <cmath>
#include <limits>

#include "engine/normalisers/candidates-inl.h"
#include "engine/normalisers/entmax_alpha.h"
#include "engine/call/parameter.h"
#include "engine/registry.h"
#include "engine/simd/export.h"
#include "engine/simd/math-inl.h"
#include "engine/simd/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::engine {
namespace HWY_NAMESPACE {
namespace entmax {

namespace hn = hwy::HWY_NAMESPACE;

// x^p for x > 0, 0 elsewhere. x is at most 1, but for rounding: only p < 0 can overflow.
template <class D>
HWY_INLINE hn::Vec<D> power(D d, hn::Vec<D> x, hn::TFromD<D> p) {
  const auto positive = hn::Gt(x, hn::Zero(d));
  if (p == 2) return hn::IfThenElseZero(positive, hn::Mul(x, x));
  if (p == 1) return hn::IfThenElseZero(positive, x);
  if (p == hn::TFromD<D>(0.5)) return hn::Sqrt(hn::IfThenElseZero(positive, x));
  if (p == 0) return hn::IfThenElseZero(positive, hn::Set(d, hn::TFromD<D>(1)));
  const auto safe = hn::IfThenElse(positive, x, hn::Set(d, hn::TFromD<D>(1)));
  const auto exponent = hn::Mul(hn::Set(d, p), log(d, safe));
  return hn::IfThenElseZero(positive, p > 0 ? exp_bounded(d, exponent) : exp(d, exponent));
}

template <class T>
class Stage final : public NormaliserStage<T> {
  using D = hn::ScalableTag<T>;
  static constexpr size_t N = HWY_LANES(T);
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();

 public:
  explicit Stage(const StageContext& context) {
    const Entmax& choice = std::get<Entmax>(context.problem.normaliser);
    fixed_alpha_ = static_cast<T>(choice.alpha);
    alpha_ = Parameter<T>(choice.alpha_tensor, 0);
    if (context.gradients)
      alpha_.set_gradient(std::get<Entmax>(context.gradients->normaliser).alpha_tensor);
  }

  Kind kind() const override { return Kind::kThreshold; }
  RowTerm row_term() const override { return RowTerm::kRows; }

  // Statistics: the largest score, tau of the scores less it (0 in the limit), 1 / sum of the powers
  // (1 but for rounding; of the exponentials in the limit), and the number of weights.
  void solve(Tile<T>& tile, T*) const override {
    auto& list = candidates::list_of_this_thread<T>();
    const size_t columns = candidates::padded<T>(tile.nk);
    list.reserve(columns);
    const T factor = entmax_factor(alpha(tile.head)), p = 1 / factor;  // in the limit 0, infinite
    for (size_t r = 0; r < tile.nq; ++r) {
      const T* s = tile.s + r * tile.s_stride;
      T* stats = tile.rows.stats + r * kStatistics;
      std::fill_n(stats, kStatistics, T(0));
      const T most = candidates::largest(s, columns);
      list.n = 0;
      if (most != kInfinity) candidates::collect(s, columns, most - p, most, list);
      const T total = most == kInfinity ? most : scale(list, factor > 0 ? factor : T(1));
      if (!(total < kInfinity) || list.n == 0) {
        const bool spoiled = most == kInfinity || !(total < kInfinity);
        stats[0] = spoiled ? std::numeric_limits<T>::quiet_NaN() : T(0);
        stats[1] = kInfinity;
        candidates::store_nothing(tile, r, stats[0]);
        continue;
      }
      const T tau = factor == 0 ? T(0) : p == 2 ? threshold_of_squares(list) : threshold(list, p);
      const T inverse = 1 / (factor == 0 ? exponentials(list) : powers(list, p, tau));
      stats[0] = most;
      stats[1] = tau;
      stats[2] = inverse;
      stats[3] = static_cast<T>(candidates::store_weights(
          tile, r, list, [&](size_t i) { return list.value[i] * inverse; }));
      tile.rows.carry[r] = 1;
    }
  }

  void weights(Tile<T>& tile) const override {
    const D d;
    const T factor = entmax_factor(alpha(tile.head)), p = 1 / factor;
    for (size_t r = 0; r < tile.nq; ++r) {
      T* s = tile.s + r * tile.s_stride;
      const T* stats = tile.stats + r * kStatistics;
      if (factor == 0 && stats[1] == 0) {
        softmax_again(s, candidates::padded<T>(tile.nk), stats);
        continue;
      }
      const auto most = hn::Set(d, stats[0]), tau = hn::Set(d, stats[1]),
                 inverse = hn::Set(d, stats[2]);
      for (size_t c = 0; c < candidates::padded<T>(tile.nk); c += N) {
        const auto z = hn::Mul(hn::Set(d, factor), hn::Sub(hn::LoadU(d, s + c), most));
        hn::StoreU(hn::Mul(inverse, power(d, hn::Sub(z, tau), p)), d, s + c);
      }
    }
  }

  size_t support_size(const T* stats, size_t) const override {
    return static_cast<size_t>(stats[3]);
  }
  T below_support(size_t head, const T* stats) const override {
    const T factor = entmax_factor(alpha(head));
    if (factor == 0) return -kInfinity;  // softmax: all have weight
    return candidates::below_threshold(stats[0], stats[1] / factor);
  }

  void row_terms(const Tile<T>& tile, T* terms) const override {
    const D d;
    const T exponent = 1 - entmax_factor(alpha(tile.head));
    for (size_t r = 0; r < tile.nq; ++r) {
      const T *a = tile.s + r * tile.s_stride, *da = tile.ds + r * tile.s_stride;
      auto sum = hn::Zero(d), total = hn::Zero(d);
      for (size_t c = 0; c < candidates::padded<T>(tile.nk); c += N) {
        const auto g = power(d, hn::LoadU(d, a + c), exponent);
        sum = hn::MulAdd(g, hn::LoadU(d, da + c), sum);
        total = hn::Add(total, g);
      }
      const T all = sum_of_lanes(d, total);
      terms[r] = all > 0 ? sum_of_lanes(d, sum) / all : T(0);
    }
  }

  void backward(Tile<T>& tile) const override {
    const D d;
    const T exponent = 1 - entmax_factor(alpha(tile.head));
    for (size_t r = 0; r < tile.nq; ++r) {
      const T* a = tile.s + r * tile.s_stride;
      T* da = tile.ds + r * tile.s_stride;
      const auto mean = hn::Set(d, tile.row_term[r]);
      for (size_t c = 0; c < candidates::padded<T>(tile.nk); c += N) {
        const auto weight = hn::LoadU(d, a + c);
        const auto g = power(d, weight, exponent);
        const auto x = hn::Mul(g, hn::Sub(hn::LoadU(d, da + c), mean));
        hn::StoreU(hn::IfThenElseZero(hn::Gt(weight, hn::Zero(d)), x), d, da + c);
      }
    }
  }

  // d alpha = sum_j dA_j [ (a_j - g_j / G) / f^2 - (a_j log a_j + H g_j / G) / f ], f = alpha - 1,
  // G = sum g, H the entropy. With l = log a, u = e^(-f l) - 1 and U = sum a u the bracket is
  // a (U - u - f (l (1 + U) + H (1 + u))) / (f^2 (1 + U)), which does not cancel as f goes to 0: its
  // limit is a (sum a l^2 - l^2) / 2.
  size_t partial_size() const override { return alpha_.wants_gradient() ? 1 : 0; }
  void backward_parameters(const Tile<T>& tile, T* partial) const override {
    const double f = entmax_factor(alpha(tile.head));
    for (size_t r = 0; r < tile.nq; ++r) {
      const T *a = tile.s + r * tile.s_stride, *da = tile.ds + r * tile.s_stride;
      if (std::isnan(tile.stats[r * kStatistics])) *partial = tile.stats[r * kStatistics];
      double mass = 0, entropy = 0, squares = 0, mean = 0;  // of w, -w l, w l^2, w u
      const auto for_weights = [&](const auto& body) {
        for (size_t c = 0; c < tile.nk; ++c) {
          if (!(a[c] > 0)) continue;
          const double w = a[c] / mass, l = std::log(w);
          body(c, w, l, std::expm1(-f * l));
        }
      };
      for (size_t c = 0; c < tile.nk; ++c) mass += a[c];
      for_weights([&](size_t, double w, double l, double u) {
        entropy -= w * l;
        squares += w * l * l;
        mean += w * u;
      });
      double sum = 0;
      for_weights([&](size_t c, double w, double l, double u) {
        const double slope =
            f == 0 ? (squares - l * l) / 2
                   : (mean - u - f * (l * (1 + mean) + entropy * (1 + u))) / (f * f * (1 + mean));
        sum += da[c] * w * slope;
      });
      *partial += static_cast<T>(sum);
    }
  }
  void store_parameters(size_t head, const T* partial) const override {
    alpha_.add_to_gradient(head, partial);
  }

 private:
  T alpha(size_t head) const { return alpha_ ? *alpha_.of(head) : fixed_alpha_; }

  // Scores to z in place; returns a sum that is NaN if one of them is.
  static T scale(candidates::List<T>& list, T factor) {
    const D d;
    std::fill_n(list.value.begin() + list.n, candidates::padded<T>(list.n) - list.n, T(0));
    auto sum = hn::Zero(d);
    for (size_t c = 0; c < list.n; c += N) {
      const auto z = hn::Mul(hn::LoadU(d, &list.value[c]), hn::Set(d, factor));
      sum = hn::Add(sum, z);
      hn::StoreU(z, d, &list.value[c]);
    }
    candidates::pad(list);
    return sum_of_lanes(d, sum);
  }

  // z to (z - tau)^p in place; returns their sum.
  static T powers(candidates::List<T>& list, T p, T tau) {
    const D d;
    auto sum = hn::Zero(d);
    for (size_t c = 0; c < candidates::padded<T>(list.n); c += N) {
      const auto x = power(d, hn::Sub(hn::LoadU(d, &list.value[c]), hn::Set(d, tau)), p);
      sum = hn::Add(sum, x);
      hn::StoreU(x, d, &list.value[c]);
    }
    return sum_of_lanes(d, sum);
  }

  // Scores less the largest to their exponentials in place; returns their sum.
  static T exponentials(candidates::List<T>& list) {
    const D d;
    auto sum = hn::Zero(d);
    for (size_t c = 0; c < candidates::padded<T>(list.n); c += N) {
      const auto x = exp(d, hn::LoadU(d, &list.value[c]));
      sum = hn::Add(sum, x);
      hn::StoreU(x, d, &list.value[c]);
    }
    return sum_of_lanes(d, sum);
  }

  static void softmax_again(T* s, size_t columns, const T* stats) {
    const D d;
    const auto most = hn::Set(d, stats[0]), inverse = hn::Set(d, stats[2]);
    for (size_t c = 0; c < columns; c += N) {
      const auto x = exp(d, hn::Sub(hn::LoadU(d, s + c), most));
      hn::StoreU(hn::Mul(inverse, x), d, s + c);
    }
  }

  // The sum of (z - tau)^p and its derivative by -tau.
  static void sums(const candidates::List<T>& list, T p, T tau, T* sum, T* slope) {
    const D d;
    auto a = hn::Zero(d), b = hn::Zero(d);
    for (size_t c = 0; c < candidates::padded<T>(list.n); c += N) {
      const auto x = hn::Sub(hn::LoadU(d, &list.value[c]), hn::Set(d, tau));
      const auto less = power(d, x, p - 1);
      a = hn::Add(a, hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), hn::Mul(less, x)));
      b = hn::Add(b, less);
    }
    *sum = sum_of_lanes(d, a);
    *slope = p * sum_of_lanes(d, b);
  }

  static T threshold(candidates::List<T>& list, T p) {
    // The largest weight is at most 1 and at least 1 / n.
    T low = -1, high = -std::pow(1 / static_cast<T>(list.n), 1 / p);
    T tau = low;
    for (int step = 0; step < kSteps && low < high; ++step) {
      T sum, slope;
      sums(list, p, tau, &sum, &slope);
      (sum >= 1 ? low : high) = tau;
      T next = tau + (sum - 1) / slope;
      if (!(next > low && next < high)) next = (low + high) / 2;
      if (step == kDrop) candidates::keep_above(list, low);
      const bool done = close(next, tau);
      tau = next;
      if (done) break;
    }
    return tau;
  }
  static constexpr int kSteps = 2 * std::numeric_limits<T>::digits;
  // Newton's first steps come from below: what they have passed is a good part of the list.
  static constexpr int kDrop = 1;
  static bool close(T a, T b) {
    return std::fabs(a - b) <= std::numeric_limits<T>::epsilon() * std::fabs(b) / 2;
  }

  // The same for p = 2. With x = z - tau on the support of n, sum (x - step)^2 = 1 is a quadratic:
  // right as soon as the support is, which is when its size no longer changes.
  static T threshold_of_squares(candidates::List<T>& list) {
    T low = -1, high = -1 / std::sqrt(static_cast<T>(list.n));
    T tau = low, last = 0;
    for (int step = 0; step < kSteps && low < high; ++step) {
      T sum[4];
      sums_of_squares(list, tau, sum);
      const T n = sum[0], excess = sum[2] - 1, root = sum[1] * sum[1] - n * excess;
      (excess >= 0 ? low : high) = tau;
      const bool solves = step > kDrop && root >= 0;
      T next = tau + excess / (solves ? sum[1] + std::sqrt(root) : 2 * sum[1]);
      const bool done = close(next, tau) || (solves && n == last);
      if (!done && !(next > low && next < high)) next = (low + high) / 2;
      if (step == kDrop) candidates::keep_above(list, low);
      tau = next;
      if (done) break;
      last = solves ? n : 0;
    }
    return tau;
  }
  // How many entries are above tau, the sum of what they exceed it by, and of its squares.
  static HWY_INLINE void sums_of_squares(const candidates::List<T>& list, T tau, T* sums) {
    const D d;
    hn::Vec<D> sum[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    for (size_t c = 0; c < list.n; c += N) {
      const auto x = hn::Max(hn::Zero(d), hn::Sub(hn::LoadU(d, &list.value[c]), hn::Set(d, tau)));
      sum[0] = hn::Add(sum[0], hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), hn::Set(d, T(1))));
      sum[1] = hn::Add(sum[1], x);
      sum[2] = hn::MulAdd(x, x, sum[2]);
    }
    sum_four(d, sum, sums);
  }

  T fixed_alpha_ = T(1.5);
  Parameter<T> alpha_;
};

}  // namespace entmax

FOVEA_TARGET_FACTORY(NormaliserPointer, make_entmax, entmax::Stage)

}  // namespace HWY_NAMESPACE
}  // namespace fovea::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::engine {
FOVEA_FACTORY(NormaliserPointer, make_entmax)
}  // namespace fovea::engine
#endif
