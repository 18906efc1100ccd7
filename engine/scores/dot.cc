// e = scale q.k. The scale is folded into the key panels; the products are engine/product.h's.
#include <cmath>

#include "engine/product.h"
#include "engine/registry.h"

namespace fovea::engine {
namespace {

template <class T>
class DotStage final : public ScoreStage<T> {
 public:
  explicit DotStage(const StageContext& context)
      : products_(products<T>()), width_(context.geometry.query_width) {
    const auto& dot = std::get<Dot>(context.problem.score.kind);
    scale_ = static_cast<T>(dot.scale.value_or(1 / std::sqrt(static_cast<double>(std::max<size_t>(1, width_)))));
  }

  size_t panel_size() const override { return kPanelKeys * std::max<size_t>(1, width_); }
  void pack_keys(const T* rows, size_t stride, size_t nk, T* panel) const override {
    products_.pack(rows, stride, nk, width_, scale_, panel);
  }
  void score(Tile<T>& tile) const override {
    products_.score(tile, tile.q, tile.q_stride, width_, tile.k_panel, tile.s);
  }
  void backward_query(Tile<T>& tile) const override {
    products_.aggregate(tile, tile.ds, tile.k, tile.k_stride, width_, scale_, tile.first ? Into::kStore : Into::kAdd, nullptr,
                        tile.dq, tile.dq_stride);
  }
  void backward_key(Tile<T>& tile) const override {
    products_.transposed(tile, tile.ds, tile.q, tile.q_stride, width_, scale_, tile.first ? Into::kStore : Into::kAdd, tile.dk,
                         tile.dk_stride);
  }

 private:
  const Products<T>& products_;
  const size_t width_;
  T scale_;
};

}  // namespace

template <class T>
ScorePointer<T> make_dot(const StageContext& context) {
  return std::make_unique<DotStage<T>>(context);
}
template ScorePointer<float> make_dot<float>(const StageContext&);
template ScorePointer<double> make_dot<double>(const StageContext&);

}  // namespace fovea::engine
