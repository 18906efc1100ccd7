// e'_ij = e_ij + b_e for the edge e of the pair; b [edges] or [edges, H], db_e = de_ij (summed over
// heads where b has none). All heads of a row are one worker's, so nothing is added to by two.
#include "engine/call/view.h"
#include "engine/registry.h"

namespace fovea::engine {
namespace {

template <class T>
class EdgeBiasStage final : public ModifierStage<T> {
 public:
  EdgeBiasStage(const StageContext& context, size_t index)
      : bias_(std::get<EdgeBias>(context.problem.score.modifiers[index]).bias) {
    if (context.gradients)
      gradient_ = std::get<EdgeBias>(context.gradients->score.modifiers[index]).bias;
  }

  void apply(Tile<T>& tile, const T*, T*) const override {
    for (size_t c = tile.row_begin(0); c < tile.row_end(0); ++c)
      tile.s[c] += read<T>(bias_, edge(tile, c), head(bias_, tile));
  }
  void backward(Tile<T>& tile, T*, const T*, T*) const override {
    if (!gradient_) return;
    for (size_t c = tile.row_begin(0); c < tile.row_end(0); ++c)
      element<T>(gradient_, edge(tile, c), head(gradient_, tile)) += tile.ds[c];
  }

 private:
  static int64_t edge(const Tile<T>& tile, size_t c) {
    return static_cast<int64_t>(tile.edge0 + c);
  }
  static int64_t head(const View& view, const Tile<T>& tile) {
    return view.rank == 2 ? static_cast<int64_t>(tile.head) : 0;
  }

  View bias_, gradient_;
};

}  // namespace

template <class T>
ModifierPointer<T> make_edge_bias(const StageContext& context, size_t index) {
  return std::make_unique<EdgeBiasStage<T>>(context, index);
}
template ModifierPointer<float> make_edge_bias<float>(const StageContext&, size_t);
template ModifierPointer<double> make_edge_bias<double>(const StageContext&, size_t);

}  // namespace fovea::engine
