// The user's function of score and position, a run of contiguous keys at a time. A key that is
// masked (-infinity) stays so.
#include <algorithm>
#include <limits>
#include <string>

#include "engine/registry.h"
#include "engine/call/view.h"

namespace fovea::engine {
namespace {

template <class T>
class CustomStage final : public ModifierStage<T> {
 public:
  CustomStage(const StageContext& context, size_t index)
      : custom_(std::get<Custom>(context.problem.score.modifiers[index])) {
    const bool differentiable =
        sizeof(T) == 4 ? custom_.derivative_f32 != nullptr : custom_.derivative_f64 != nullptr;
    if (context.gradients && !differentiable) {
      throw InvalidArgument(std::string("score.custom: no derivative, expected one for ") +
                            name_of(dtype_of<T>()) + " gradients");
    }
  }

  bool keeps_tile() const override { return true; }  // of the scores before

  void apply(Tile<T>& tile, const T*, T* saved) const override {
    for_runs(tile, [&](size_t r, size_t c, size_t n, const choice::RowPosition& at) {
      T* s = tile.s + r * tile.s_stride + c;
      T before[kRun];
      std::copy_n(s, n, before);
      if (saved) std::copy_n(s, n, saved + r * tile.s_stride + c);
      value(s, n, at);
      constexpr T lowest = -std::numeric_limits<T>::infinity();
      for (size_t k = 0; k < n; ++k) s[k] = before[k] == lowest ? lowest : s[k];
    });
  }
  void backward(Tile<T>& tile, T*, const T* saved, T*) const override {
    for_runs(tile, [&](size_t r, size_t c, size_t n, const choice::RowPosition& at) {
      T* ds = tile.ds + r * tile.s_stride + c;
      T before[kRun];
      std::copy_n(ds, n, before);
      derivative(saved + r * tile.s_stride + c, ds, n, at);
      // A pair that does not count may hold any score.
      for (size_t k = 0; k < n; ++k) ds[k] = before[k] == 0 ? T(0) : ds[k];
    });
  }

 private:
  static constexpr size_t kRun = 256;

  template <class Visit>
  void for_runs(const Tile<T>& tile, const Visit& visit) const {
    const size_t longest = tile.key_index ? 1 : kRun;
    for (size_t r = 0; r < tile.nq; ++r) {
      const int64_t i = tile.position_at(r);
      for (size_t c = tile.row_begin(r); c < tile.row_end(r); c += longest) {
        const int64_t j = tile.key_index ? tile.key_index[c] : static_cast<int64_t>(tile.k0 + c);
        visit(r, c, std::min(longest, tile.row_end(r) - c),
              choice::RowPosition{static_cast<int64_t>(tile.batch), static_cast<int64_t>(tile.head),
                                  i, j});
      }
    }
  }
  void value(float* s, size_t n, const choice::RowPosition& at) const {
    custom_.value_f32(custom_.context, s, n, at);
  }
  void value(double* s, size_t n, const choice::RowPosition& at) const {
    custom_.value_f64(custom_.context, s, n, at);
  }
  void derivative(const float* s, float* ds, size_t n, const choice::RowPosition& at) const {
    custom_.derivative_f32(custom_.context, s, ds, n, at);
  }
  void derivative(const double* s, double* ds, size_t n, const choice::RowPosition& at) const {
    custom_.derivative_f64(custom_.context, s, ds, n, at);
  }

  const Custom& custom_;
};

}  // namespace

template <class T>
ModifierPointer<T> make_custom(const StageContext& context, size_t index) {
  return std::make_unique<CustomStage<T>>(context, index);
}
template ModifierPointer<float> make_custom<float>(const StageContext&, size_t);
template ModifierPointer<double> make_custom<double>(const StageContext&, size_t);

}  // namespace fovea::engine
