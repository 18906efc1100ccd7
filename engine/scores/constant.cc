// e = 1 for every pair: pooling. Query and key receive no gradient.
#include <algorithm>

#include "engine/registry.h"

namespace fovea::engine {
namespace {

template <class T>
class ConstantStage final : public ScoreStage<T> {
 public:
  explicit ConstantStage(const StageContext& context)
      : query_width_(context.geometry.query_width), key_width_(context.geometry.key_width) {}

  void score(Tile<T>& tile) const override {
    for (size_t i = 0; i < tile.nq; ++i) std::fill_n(tile.s + i * tile.s_stride, tile.nk, T(1));
  }
  void backward_query(Tile<T>& tile) const override {
    for (size_t i = 0; i < tile.nq && tile.first; ++i)
      std::fill_n(tile.dq + i * tile.dq_stride, query_width_, T(0));
  }
  void backward_key(Tile<T>& tile) const override {
    for (size_t j = 0; j < tile.nk && tile.first; ++j)
      std::fill_n(tile.dk + j * tile.dk_stride, key_width_, T(0));
  }

 private:
  const size_t query_width_, key_width_;
};

}  // namespace

template <class T>
ScorePointer<T> make_constant(const StageContext& context) {
  return std::make_unique<ConstantStage<T>>(context);
}
template ScorePointer<float> make_constant<float>(const StageContext&);
template ScorePointer<double> make_constant<double>(const StageContext&);

}  // namespace fovea::engine
