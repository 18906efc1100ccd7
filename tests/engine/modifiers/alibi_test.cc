#include "tests/engine/bounds.h"
#include "tests/engine/modifiers/modifier_check.h"

namespace fovea::engine::testing {
namespace {

template <class T>
void check_alibi(size_t nq, size_t nk) {
  constexpr double ulp = std::numeric_limits<T>::epsilon();
  std::vector<T> slopes = {T(9), T(0.25)}, gradient(2, T(0));
  using Rig = ModifierRig<T>;
  Rig rig(nq, nk, Alibi{view_of(slopes, {2})}, Alibi{view_of(gradient, {2})}, make_alibi<T>);
  const std::vector<T> before = rig.s, ds = rig.ds;
  rig.stage->apply(rig.tile, rig.scratch.data(), rig.saved.data());
  rig.stage->backward(rig.tile, rig.scratch.data(), rig.saved.data(), rig.partial_or_null());
  rig.store();
  double want_gradient = 0, terms = 0;
  for (size_t r = 0; r < nq; ++r)
    for (size_t c = 0; c < nk; ++c) {
      const double distance = std::fabs(static_cast<double>(Rig::kFirstQuery + r) -
                                        static_cast<double>(Rig::kFirstKey + c));
      const size_t at = r * rig.stride + c;
      expect_close(rig.s[at], before[at] - 0.25 * distance,
                   bounds::rounded(1 + 0.25 * distance, ulp));
      ASSERT_EQ(rig.ds[at], ds[at]);
      want_gradient -= ds[at] * distance;
      terms += std::fabs(ds[at] * distance);
    }
  EXPECT_EQ(gradient[0], 0);
  expect_close(gradient[1], want_gradient, bounds::rounded(terms, ulp));
}

class AlibiTest : public TargetTest {};

TEST_P(AlibiTest, TakesAwaySlopeTimesDistance) {
  for (auto [nq, nk] : modifier_sizes()) {
    check_alibi<float>(nq, nk);
    check_alibi<double>(nq, nk);
  }
}

TEST_P(AlibiTest, GatheredKeysHaveTheirOwnPositions) {
  std::vector<float> slopes = {0, 1};
  using Rig = ModifierRig<float>;
  Rig rig(1, 3, Alibi{view_of(slopes, {2})}, Alibi{}, make_alibi<float>);
  const std::vector<int32_t> keys = {7, 0, 3};
  rig.tile.key_index = keys.data();
  const std::vector<float> before = rig.s;
  rig.stage->apply(rig.tile, nullptr, nullptr);
  for (size_t c = 0; c < 3; ++c)
    EXPECT_FLOAT_EQ(rig.s[c], before[c] - std::abs(keys[c] - static_cast<int>(Rig::kFirstQuery)));
}

// What a score may add by itself is what `apply` would have done, for keys before, beside and after
// the queries.
TEST_P(AlibiTest, AddendIsThePenalty) {
  std::vector<float> slopes = {9, 0.25};
  using Rig = ModifierRig<float>;
  for (auto [nq, nk] : modifier_sizes()) {
    Rig rig(nq, nk, Alibi{view_of(slopes, {2})}, Alibi{}, make_alibi<float>);
    std::vector<float> scratch(kMaxQueries * rig.stage->row_scratch());
    const Addend<float> addend = rig.stage->addend(rig.tile, scratch.data());
    ASSERT_NE(addend.data, nullptr);
    for (ptrdiff_t r = 0; r < static_cast<ptrdiff_t>(nq); ++r)
      for (ptrdiff_t c = 0; c < static_cast<ptrdiff_t>(nk); ++c) {
        const ptrdiff_t distance = static_cast<ptrdiff_t>(Rig::kFirstKey) + c -
                                   static_cast<ptrdiff_t>(Rig::kFirstQuery) - r;
        ASSERT_EQ(addend.data[r * addend.stride + c],
                  -0.25f * static_cast<float>(std::abs(distance)));
      }
    const std::vector<int32_t> keys(nk, 3);
    rig.tile.key_index = keys.data();
    EXPECT_EQ(rig.stage->addend(rig.tile, scratch.data()).data, nullptr);
  }
}

FOVEA_FOR_EVERY_TARGET(AlibiTest);

}  // namespace
}  // namespace fovea::engine::testing
