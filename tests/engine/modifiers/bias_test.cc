#include <array>

#include "tests/engine/bounds.h"
#include "tests/engine/modifiers/modifier_check.h"

namespace fovea::engine::testing {
namespace {

// Every way of leaving dimensions of [2, 2, L, S] single, and of leaving the first ones out.
template <class T>
void check_bias(size_t nq, size_t nk) {
  using Rig = ModifierRig<T>;
  const std::array<int64_t, 4> full = {2, 2, static_cast<int64_t>(Rig::kFirstQuery + nq),
                                       static_cast<int64_t>(Rig::kFirstKey + nk)};
  for (int single = 0; single < 16; ++single)
    for (int left_out = 0; left_out < 4; ++left_out) {
      std::array<int64_t, 4> size{}, stride{};
      size_t n = 1;
      for (int d = 3; d >= 0; --d) {
        size[d] = d < left_out || (single >> d & 1) ? 1 : full[d];
        stride[d] = size[d] == 1 ? 0 : static_cast<int64_t>(n);
        n *= static_cast<size_t>(size[d]);
      }
      std::vector<T> bias = random_vector<T>(n, 3), gradient(n, T(0));
      const auto view = [&](std::vector<T>& data) {
        View v{.data = data.data(), .dtype = dtype_of<T>(), .rank = 4 - left_out};
        int64_t step = 1;
        for (int d = v.rank - 1; d >= 0; --d) {
          v.size[d] = size[d + left_out];
          v.stride[d] = step;
          step *= v.size[d];
        }
        return v;
      };
      Rig rig(nq, nk, Bias{view(bias)}, Bias{view(gradient)}, make_bias<T>);
      const std::vector<T> before = rig.s, ds = rig.ds;
      rig.stage->apply(rig.tile, nullptr, nullptr);
      rig.stage->backward(rig.tile, nullptr, nullptr, nullptr);
      std::vector<double> want(n, 0), terms(n, 0);
      for (size_t r = 0; r < nq; ++r)
        for (size_t c = 0; c < nk; ++c) {
          const size_t at = r * rig.stride + c;
          const auto place =
              static_cast<size_t>(stride[0] * Rig::kBatch + stride[1] * Rig::kHead +
                                  stride[2] * static_cast<int64_t>(Rig::kFirstQuery + r) +
                                  stride[3] * static_cast<int64_t>(Rig::kFirstKey + c));
          ASSERT_EQ(rig.s[at], before[at] + bias[place]);
          ASSERT_EQ(rig.ds[at], ds[at]);
          want[place] += ds[at];
          terms[place] += std::fabs(ds[at]);
        }
      for (size_t i = 0; i < n; ++i)
        FOVEA_ASSERT_CLOSE(gradient[i], want[i], bounds::rounded(terms[i], bounds::kUlpOf<T>));
      const auto sharing = rig.stage->sharing();
      EXPECT_EQ(sharing.batches, size[0] == 1);
      EXPECT_EQ(sharing.heads, size[1] == 1);
      EXPECT_EQ(sharing.keys, size[3] == 1);
    }
}

class BiasTest : public TargetTest {};

TEST_P(BiasTest, EveryBroadcast) {
  for (auto [nq, nk] : modifier_sizes()) {
    check_bias<float>(nq, nk);
    check_bias<double>(nq, nk);
    if (HasFatalFailure()) FAIL() << nq << " x " << nk;
  }
}

// What a score may add by itself: the rows as they lie, where they lie in the score's type and key
// beside key.
TEST_P(BiasTest, AddendIsTheRowsThemselves) {
  using Rig = ModifierRig<float>;
  const size_t nq = 3, nk = 9, rows = Rig::kFirstQuery + nq, columns = Rig::kFirstKey + nk;
  std::vector<float> bias = random_vector<float>(rows * columns, 3);
  View view = View::of(bias.data(), DType::kFloat32,
                       {static_cast<int64_t>(rows), static_cast<int64_t>(columns)});
  Rig rig(nq, nk, Bias{view}, Bias{}, make_bias<float>);
  const Addend<float> addend = rig.stage->addend(rig.tile, nullptr);
  ASSERT_EQ(addend.data, &bias[Rig::kFirstQuery * columns + Rig::kFirstKey]);
  EXPECT_EQ(addend.stride, static_cast<ptrdiff_t>(columns));
  const std::vector<int32_t> keys(nk, 0);
  rig.tile.key_index = keys.data();
  EXPECT_EQ(rig.stage->addend(rig.tile, nullptr).data, nullptr);
  view.stride = {1, static_cast<int64_t>(rows)};
  Rig turned(nq, nk, Bias{view}, Bias{}, make_bias<float>);
  EXPECT_EQ(turned.stage->addend(turned.tile, nullptr).data, nullptr);
}

TEST_P(BiasTest, ReadsOtherStridesAndHalfPrecision) {
  // bfloat16, stored key-major: element (i, j) at j * L + i.
  const size_t nq = 3, nk = 9, rows = ModifierRig<float>::kFirstQuery + nq,
               columns = ModifierRig<float>::kFirstKey + nk;
  std::vector<uint16_t> bias(rows * columns);
  for (size_t i = 0; i < bias.size(); ++i)
    bias[i] = static_cast<uint16_t>(0x3f80 + i % 64);  // 1 and a little more
  View view{.data = bias.data(), .dtype = DType::kBFloat16, .rank = 2};
  view.size = {static_cast<int64_t>(rows), static_cast<int64_t>(columns)};
  view.stride = {1, static_cast<int64_t>(rows)};
  ModifierRig<float> rig(nq, nk, Bias{view}, Bias{}, make_bias<float>);
  const std::vector<float> before = rig.s;
  rig.stage->apply(rig.tile, nullptr, nullptr);
  for (size_t r = 0; r < nq; ++r)
    for (size_t c = 0; c < nk; ++c) {
      const size_t place =
          (ModifierRig<float>::kFirstKey + c) * rows + ModifierRig<float>::kFirstQuery + r;
      EXPECT_EQ(rig.s[r * rig.stride + c],
                before[r * rig.stride + c] + 1 + static_cast<float>(place % 64) / 128);
    }
}

FOVEA_FOR_EVERY_TARGET(BiasTest);

}  // namespace
}  // namespace fovea::engine::testing
