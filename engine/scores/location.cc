// e_ij = q_i[j]: the query is its row of scores (Luong et al. 2015, "location"). Of the keys only
// their number is used.
#include <algorithm>

#include "engine/registry.h"

namespace fovea::engine {
namespace {

template <class T>
class LocationStage final : public ScoreStage<T> {
 public:
  explicit LocationStage(const StageContext& context)
      : width_(context.geometry.query_width), key_width_(context.geometry.key_width) {}

  void score(Tile<T>& tile) const override {
    for (size_t i = 0; i < tile.nq; ++i) {
      const T* q = tile.q + i * tile.q_stride;
      T* s = tile.s + i * tile.s_stride;
      if (!tile.key_index)
        std::copy_n(q + tile.k0, tile.nk, s);
      else
        for (size_t j = 0; j < tile.nk; ++j) s[j] = q[tile.key_index[j]];
    }
  }
  void backward_query(Tile<T>& tile) const override {
    for (size_t i = 0; i < tile.nq; ++i) {
      T* dq = tile.dq + i * tile.dq_stride;
      const T* ds = tile.ds + i * tile.s_stride;
      if (tile.first) std::fill_n(dq, width_, T(0));
      for (size_t j = tile.row_begin(i); j < tile.row_end(i); ++j)
        dq[tile.key_index ? static_cast<size_t>(tile.key_index[j]) : tile.k0 + j] += ds[j];
    }
  }
  void backward_key(Tile<T>& tile) const override {
    for (size_t j = 0; j < tile.nk && tile.first; ++j)
      std::fill_n(tile.dk + j * tile.dk_stride, key_width_, T(0));
  }

 private:
  const size_t width_, key_width_;
};

}  // namespace

template <class T>
ScorePointer<T> make_location(const StageContext& context) {
  return std::make_unique<LocationStage<T>>(context);
}
template ScorePointer<float> make_location<float>(const StageContext&);
template ScorePointer<double> make_location<double>(const StageContext&);

}  // namespace fovea::engine
