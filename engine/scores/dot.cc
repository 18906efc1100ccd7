// e = scale q.k, scale 1 / sqrt(E) unless given; it is folded into the key panels.
#include <algorithm>
#include <cmath>

#include "engine/call/facts.h"
#include "engine/bf16/products.h"
#include "engine/registry.h"
#include "engine/loops/rows.h"
#include "engine/scores/product_score.h"

namespace fovea::engine {
namespace {

// Forward of bfloat16 rows by the processor's own products. Backward multiplies the same numbers in
// float32.
class Bf16Dot final : public ProductScore<float> {
 public:
  Bf16Dot(const Bf16Products& products, size_t width, float scale)
      : ProductScore<float>(width, scale), bf16_(products), width_(width) {
    int exponent = 0;
    const bool exact = std::abs(std::frexp(scale, &exponent)) == 0.5f && std::abs(exponent) < 64;
    folded_ = exact ? scale : 1.0f;  // a power of two leaves the keys bfloat16
    factor_ = exact ? 1.0f : scale;
  }

  size_t panel_size() const override { return kPanelKeys * bf16_pairs(width_); }
  void pack_keys(const float* rows, size_t stride, size_t nk, float* panel) const override {
    bf16_.pack_keys(rows, stride, nk, width_, folded_, reinterpret_cast<uint32_t*>(panel));
  }
  bool adds() const override { return false; }
  void score(Tile<float>& tile) const override {
    bf16_.score(tile, width_, reinterpret_cast<const uint32_t*>(tile.k_panel));
    if (factor_ == 1.0f) return;
    float factors[kMaxQueries];
    std::fill_n(factors, tile.nq, factor_);
    row_loops<float>().scale(tile.s, tile.s_stride, tile.nq, tile.nk, factors);
  }

 private:
  const Bf16Products& bf16_;
  const size_t width_;
  float folded_, factor_;
};

}  // namespace

template <class T>
ScorePointer<T> make_dot(const StageContext& context) {
  const size_t width = context.geometry.query_width;
  const T scale = static_cast<T>(
      dot_scale(std::get<Dot>(context.problem.score.kind), static_cast<int64_t>(width)));
  if constexpr (sizeof(T) == 4) {
    const bool native = context.problem.query.dtype == DType::kBFloat16 && !context.gradients &&
                        width >= 8 && width <= kBf16Width;
    // Backward computes the scores again in float32, and top-k compares them with the k-th, so they
    // must be the same.
    const bool again = std::holds_alternative<TopK>(context.problem.normaliser);
    if (native && !again && scale != 0 && bf16_products())
      return std::make_unique<Bf16Dot>(*bf16_products(), width, scale);
  }
  return std::make_unique<ProductScore<T>>(width, scale);
}
template ScorePointer<float> make_dot<float>(const StageContext&);
template ScorePointer<double> make_dot<double>(const StageContext&);

}  // namespace fovea::engine
