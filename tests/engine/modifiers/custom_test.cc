#include "fovea/elementwise.h"
#include "tests/engine/bounds.h"
#include "tests/engine/modifiers/modifier_check.h"

namespace fovea::engine::testing {
namespace {

template <class T>
void check_custom(size_t nq, size_t nk) {
  const auto function = elementwise(
      [factor = 0.5](auto score, const RowPosition& at) {
        return score * score * static_cast<decltype(score)>(factor) +
               static_cast<decltype(score)>(at.query * 100 + at.key + 10 * at.head);
      },
      [](auto score, const RowPosition& at) {
        return score + static_cast<decltype(score)>(0 * at.key);
      });
  using Rig = ModifierRig<T>;
  Rig rig(nq, nk, Custom(function), Custom(function), make_custom<T>);
  const std::vector<T> before = rig.s, ds = rig.ds;
  rig.stage->apply(rig.tile, nullptr, rig.saved.data());
  rig.stage->backward(rig.tile, nullptr, rig.saved.data(), nullptr);
  for (size_t r = 0; r < nq; ++r)
    for (size_t c = 0; c < nk; ++c) {
      const size_t at = r * rig.stride + c;
      const double want =
          0.5 * before[at] * before[at] +
          static_cast<double>((Rig::kFirstQuery + r) * 100 + Rig::kFirstKey + c + 10 * Rig::kHead);
      FOVEA_ASSERT_CLOSE(rig.s[at], want, bounds::rounded(want, bounds::kUlpOf<T>));
      const double want_ds = static_cast<double>(ds[at]) * before[at];
      FOVEA_ASSERT_CLOSE(rig.ds[at], want_ds,
                         bounds::rounded(std::fabs(want_ds), bounds::kUlpOf<T>));
    }
}

class CustomTest : public TargetTest {};

TEST_P(CustomTest, RunsTheUsersFunctionAtItsPlace) {
  for (auto [nq, nk] : {std::pair<size_t, size_t>{1, 1}, {3, 15}, {4, 257}, {2, 512}}) {
    check_custom<float>(nq, nk);
    check_custom<double>(nq, nk);
  }
}

TEST_P(CustomTest, AMaskedKeyStaysMasked) {
  const auto function = elementwise([](auto, const RowPosition&) { return 7.0; },
                                    [](auto score, const RowPosition&) { return score; });
  ModifierRig<float> rig(1, 5, Custom(function), Custom(function), make_custom<float>);
  rig.s[2] = -std::numeric_limits<float>::infinity();
  rig.ds[2] = 0;
  rig.stage->apply(rig.tile, nullptr, rig.saved.data());
  rig.stage->backward(rig.tile, nullptr, rig.saved.data(), nullptr);
  EXPECT_EQ(rig.s[1], 7);
  EXPECT_EQ(rig.s[2], -std::numeric_limits<float>::infinity());
  EXPECT_EQ(rig.ds[2], 0);
}

FOVEA_FOR_EVERY_TARGET(CustomTest);

}  // namespace
}  // namespace fovea::engine::testing
