#include <algorithm>

#include "tests/engine/bounds.h"
#include "tests/engine/modifiers/modifier_check.h"

namespace fovea::engine::testing {
namespace {

// What a sum should be, and the sizes of its terms added up.
struct Sum {
  double value = 0, terms = 0;
  void operator+=(double term) { value += term, terms += std::fabs(term); }
};

template <class T>
void check_sum(T got, const Sum& want) {
  FOVEA_ASSERT_CLOSE(got, want.value, bounds::rounded(want.terms, bounds::kUlpOf<T>));
}
template <class T>
void check_sums(const std::vector<T>& got, const std::vector<Sum>& want) {
  for (size_t i = 0; i < got.size(); ++i) check_sum(got[i], want[i]);
}

enum class Tables { kKey, kValue, kBoth };

// One tile through forward and backward, against the definition with explicit tables.
template <class T>
void check_relative(size_t nq, size_t nk, int64_t clip, Tables tables) {
  using Rig = ModifierRig<T>;
  constexpr size_t kWidth = 3, kValueWidth = 2;
  const size_t n = static_cast<size_t>(2 * clip + 1);
  const double scale = 1 / std::sqrt(3.0);
  std::vector<T> rk = random_vector<T>(n * kWidth, 5), rv = random_vector<T>(n * kValueWidth, 6);
  std::vector<T> d_rk(rk.size(), T(0)), d_rv(rv.size(), T(0));
  const auto rows = static_cast<int64_t>(n);
  const auto choose = [&](std::vector<T>& key, std::vector<T>& value) {
    return Relative{tables == Tables::kValue ? View{} : view_of(key, {rows, kWidth}),
                    tables == Tables::kKey ? View{} : view_of(value, {rows, kValueWidth}), clip};
  };
  Rig rig(nq, nk, choose(rk, rv), choose(d_rk, d_rv), make_relative<T>, kWidth, kValueWidth);
  std::vector<T> q = random_vector<T>(nq * kWidth, 7), g = random_vector<T>(nq * kValueWidth, 8),
                 carry(nq, T(0.5));
  std::vector<T> o(nq * kValueWidth, T(0)), dq(nq * kWidth, T(0)),
      weights = random_vector<T>(nq * rig.stride, 9);
  const bool keys = tables != Tables::kValue, values = tables != Tables::kKey;
  Tile<T>& tile = rig.tile;
  tile.q = q.data(), tile.q_stride = kWidth, tile.g = g.data(), tile.g_stride = kValueWidth;
  tile.o = o.data(), tile.o_stride = kValueWidth, tile.dq = dq.data(), tile.dq_stride = kWidth;
  tile.value_width = kValueWidth, tile.rows.carry = carry.data();
  const std::vector<T> before = rig.s, da = rig.ds;
  const auto offset = [&](size_t r, size_t c) {
    const int64_t j = static_cast<int64_t>(Rig::kFirstKey + c),
                  i = static_cast<int64_t>(Rig::kFirstQuery + r);
    return static_cast<size_t>(std::clamp(j - i, -clip, clip) + clip);
  };

  // Forward: scores, then two tiles of the same weights, the first carried by 0.5, and 0.5 at the
  // end.
  rig.stage->begin_rows(tile, rig.scratch.data());
  rig.stage->apply(tile, rig.scratch.data(), nullptr);
  const std::vector<T> after = rig.s;
  tile.s = weights.data();
  tile.first = true;
  rig.stage->after_weights(tile, rig.scratch.data());
  tile.first = false;
  rig.stage->after_weights(tile, rig.scratch.data());
  rig.stage->finish_rows(tile, rig.scratch.data());
  // Backward.
  rig.stage->begin_rows(tile, rig.scratch.data());
  rig.stage->backward_weights(tile, rig.scratch.data(), rig.partial_or_null());
  const std::vector<T> da_after = rig.ds;
  rig.stage->backward(tile, rig.scratch.data(), nullptr, rig.partial_or_null());
  rig.stage->backward_query(tile, rig.scratch.data());
  rig.store();

  std::vector<Sum> want_o(o.size()), want_dq(dq.size()), want_drk(rk.size()), want_drv(rv.size());
  for (size_t r = 0; r < nq; ++r)
    for (size_t c = 0; c < nk; ++c) {
      const size_t at = r * rig.stride + c, row = offset(r, c);
      Sum want_s, want_da;
      want_s += before[at];
      want_da += da[at];
      for (size_t e = 0; e < kWidth && keys; ++e) {
        want_s += scale * q[r * kWidth + e] * rk[row * kWidth + e];
        want_dq[r * kWidth + e] += scale * da_after[at] * rk[row * kWidth + e];
        want_drk[row * kWidth + e] += scale * da_after[at] * q[r * kWidth + e];
      }
      for (size_t e = 0; e < kValueWidth && values; ++e) {
        want_da += g[r * kValueWidth + e] * rv[row * kValueWidth + e];
        want_o[r * kValueWidth + e] += (0.5 * 0.5 + 0.5) * weights[at] * rv[row * kValueWidth + e];
        want_drv[row * kValueWidth + e] += weights[at] * g[r * kValueWidth + e];
      }
      check_sum(after[at], want_s);
      check_sum(da_after[at], want_da);
    }
  check_sums(o, want_o);
  check_sums(dq, want_dq);
  check_sums(d_rk, want_drk);
  check_sums(d_rv, want_drv);
}

class RelativeTest : public TargetTest {};

TEST_P(RelativeTest, AgreesWithTheDefinition) {
  for (auto [nq, nk] : modifier_sizes())
    for (int64_t clip : {0, 1, 4, 100})
      for (Tables tables : {Tables::kKey, Tables::kValue, Tables::kBoth}) {
        check_relative<float>(nq, nk, clip, tables);
        check_relative<double>(nq, nk, clip, tables);
        if (HasFatalFailure()) FAIL() << nq << " x " << nk << ", clip " << clip;
      }
}

FOVEA_FOR_EVERY_TARGET(RelativeTest);

}  // namespace
}  // namespace fovea::engine::testing
